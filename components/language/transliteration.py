"""Russian typed in Latin letters: `kak vernut tovar` is `как вернуть товар`."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache

from components.language.letters import Reading, is_shouted, letters, like, switched
from components.language.normalise import fold
from components.language.vocabulary import EMPTY, Vocabulary, is_frequent
from components.language.words import MAX_LENGTH

# What people write, several schemes at once: GOST 7.79, ICAO passports, BGN, and the habits of chats. Each spelling has
# its readings with a price in nats for the rarer ones.
_PLAIN = zip(
    "a b d f k l m n o p r t v zh kh ts ch shh shch ya ja yu ju yy iy ij yj".split(),
    "а б д ф к л м н о п р т в ж х ц ч щ щ я я ю ю ый ий ий ый".split(),
    strict=True,
)
"""Spellings with one reading."""
_READINGS: Mapping[str, tuple[tuple[str, float], ...]] = {
    **{spelling: ((reading, 0.0),) for spelling, reading in _PLAIN},
    "c": (("ц", 0.5), ("с", 1.5), ("к", 2.0)),
    "e": (("е", 0.0), ("э", 1.0)),
    "g": (("г", 0.0), ("ж", 3.0)),
    "h": (("х", 0.5),),
    "i": (("и", 0.0), ("й", 1.0), ("ы", 2.0)),
    "j": (("й", 0.5), ("ж", 1.0), ("ь", 2.0)),
    "q": (("к", 1.5), ("я", 2.0)),
    "s": (("с", 0.0), ("ш", 4.0)),
    "u": (("у", 0.0), ("ю", 3.0)),
    "w": (("в", 1.0), ("ш", 1.5), ("щ", 2.5)),
    "x": (("х", 0.5), ("кс", 1.0)),
    "y": (("ы", 0.0), ("й", 0.0), ("и", 2.5), ("ь", 3.0)),
    "z": (("з", 0.0), ("ж", 4.0), ("ц", 4.0)),
    "'": (("ь", 0.0), ("ъ", 1.0)),
    "`": (("ь", 0.0), ("ъ", 1.0)),
    "4": (("ч", 0.5),),
    "6": (("ш", 0.5),),
    "tz": (("ц", 0.5),),
    "cz": (("ц", 0.5),),
    "sh": (("ш", 0.0), ("щ", 2.0)),
    "sch": (("щ", 0.0), ("сч", 1.5)),
    "sc": (("щ", 2.0),),
    "ia": (("я", 1.0),),
    "iu": (("ю", 1.0),),
    "yo": (("е", 0.5),),
    "jo": (("е", 0.5),),
    "io": (("е", 3.0),),
    "ye": (("е", 0.5), ("ье", 1.0), ("ые", 1.0)),
    "je": (("е", 0.5), ("э", 1.0), ("ье", 1.0)),
    "eh": (("э", 1.0),),
    "ck": (("к", 1.0),),
    "ph": (("ф", 1.0),),
}
_MAX_READING = max(map(len, _READINGS))
_SOFTENED = frozenset("бвдзлмнпрст")  # a soft sign after these is often left out: `vernut`, `skolko`
_SOFT_SIGN = 1.5
_BEAM = 10

_TOKEN = re.compile(r"(?<![\w@/.:\\])[46]?[A-Za-z](?:[A-Za-z'`]*[A-Za-z'`])?(?![\w@/\\]|[.:]\w|-[А-Яа-яЁё])")
_SHOUT = re.compile(r"[A-Z]{2,}")

# Nats. Set on the development questions of the benchmark sets, clean and transliterated by program.
_KNOWN_WORD_BONUS = 10.0
_ALONE = 3.0  # maximum gain of a short word or an unknown reading; too little without its neighbours


def transliterations(text: str, vocabulary: Vocabulary = EMPTY, *, limit: int = 3) -> tuple[str, ...]:
    """Return `text` with Russian words in Latin letters transliterated, likeliest reading first.

    Empty if no word can be read so. Names, codes, addresses and English words stay unchanged. Readings are ranked by
    `vocabulary`, frequent words and letter pairs; ё is written as е.
    """
    shouted = is_shouted(text)
    tokens = (match for match in _TOKEN.finditer(text) if len(match.group()) <= MAX_LENGTH)
    readings = [_reading(match, vocabulary, shouted=shouted) for match in tokens]
    chosen = [reading for reading in switched(readings) if reading.texts]
    variants: dict[str, None] = {}
    for rank in range(limit if chosen else 0):
        replaced = text
        for reading in reversed(chosen):
            variant = reading.texts[min(rank, len(reading.texts) - 1)]
            replaced = replaced[: reading.start] + variant + replaced[reading.end :]
        variants[replaced] = None
    return tuple(variants)


def _reading(match: re.Match[str], vocabulary: Vocabulary, *, shouted: bool) -> Reading:
    typed = match.group()
    ranked = sorted((cost - _bonus(word, vocabulary), word) for word, cost in _candidates(fold(typed)))
    if not ranked:
        return Reading(match.start(), match.end(), (), 0.0, 0.0)
    best_cost, best = ranked[0]
    is_known = vocabulary.knows(typed) or vocabulary.knows(typed.partition("'")[0])
    abbreviation = bool(_SHOUT.fullmatch(typed)) and not shouted
    # A name is written so in either alphabet, which tells nothing about the other words.
    name = abbreviation or (is_known and not is_frequent(typed))
    gain = letters("en").cost(fold(typed).strip("'`46")) - best_cost - (_KNOWN_WORD_BONUS if is_known else 0.0)
    if len(typed) < 3 or not vocabulary.knows(best):
        gain = min(gain, _ALONE)
    if abbreviation:
        gain -= _KNOWN_WORD_BONUS
    likely = [word for _, word in ranked if not vocabulary.knows(best) or vocabulary.knows(word)]
    texts = tuple(like(typed, word) for word in likely[:3])
    return Reading(match.start(), match.end(), texts, gain, 0.0 if name else gain)


def _bonus(word: str, vocabulary: Vocabulary) -> float:
    """Return the bonus for a known reading: higher for an exact form than for a stem, and for frequent words."""
    if is_frequent(word):
        worth = _KNOWN_WORD_BONUS + 3.0
    elif frequency := vocabulary.frequency(word):
        worth = _KNOWN_WORD_BONUS + min(2.5, 0.5 + math.log10(frequency))
    else:
        worth = _KNOWN_WORD_BONUS if vocabulary.holds(word) else 0.0
    return worth * min(1.0, len(word) / 3)


@lru_cache(maxsize=8192)
def _candidates(typed: str) -> tuple[tuple[str, float], ...]:
    """Return the likeliest Russian readings of a word with their costs, by a beam search with letter pairs."""
    pair = letters("ru").costs
    beams: list[list[tuple[float, str]]] = [[] for _ in range(len(typed) + 1)]
    beams[0] = [(0.0, " ")]
    for position in range(len(typed)):
        for cost, text in sorted(beams[position])[:_BEAM]:
            for length in range(1, min(_MAX_READING, len(typed) - position) + 1):
                for read, price in _READINGS.get(typed[position : position + length], ()):
                    total, last = cost + price, text[-1]
                    for letter in read:
                        total += pair[last + letter]
                        last = letter
                    following = beams[position + length]
                    following.append((total, text + read))
                    if last in _SOFTENED:
                        following.append((total + pair[last + "ь"] + _SOFT_SIGN, text + read + "ь"))
    ends = sorted((cost + pair[text[-1] + " "], text[1:]) for cost, text in beams[-1])
    best: dict[str, float] = {}
    for cost, word in ends:
        best.setdefault(word, cost)
    return tuple(best.items())[: 2 * _BEAM]
