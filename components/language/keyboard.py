"""Words typed in the wrong keyboard layout: `jib,rf` is `ошибка`, `куегкт` is `return`."""

import re
from collections.abc import Iterator

from components.language.letters import Reading, is_shouted, letters, switched
from components.language.normalise import CYRILLIC_LOOKALIKES, fold
from components.language.vocabulary import EMPTY, Vocabulary, is_frequent

_LATIN_KEYS = "`qwertyuiop[]asdfghjkl;'zxcvbnm,.~QWERTYUIOP{}ASDFGHJKL:\"ZXCVBNM<>"
_CYRILLIC_KEYS = "ёйцукенгшщзхъфывапролджэячсмитьбюЁЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮ"
_TO_CYRILLIC = str.maketrans(_LATIN_KEYS, _CYRILLIC_KEYS)
_TO_LATIN = str.maketrans(_CYRILLIC_KEYS, _LATIN_KEYS)

_TOKEN = re.compile(r"[^\s-]+")  # IP-адрес is two words with two readings
_LATIN = re.compile("[A-Za-z]")
_CYRILLIC = re.compile("[А-Яа-яЁё]")
_NOT_TYPED_WORDS = re.compile(r"[@/\\=_*#]")  # addresses, paths, markup
_OPENING = "[{('\"<«@"
_CLOSING = ",.;:'\"]}>)?!&/@^$»…"
_MAX_MARKS = 3
"""Marks at either end of a word that are tried as letters: trying all of them takes cubic time."""
# What the keys of the sentence marks give when the layout is English by mistake.
_MARKS = str.maketrans("&/@^$", '?.":;')

# Nats. Set on the development questions of the benchmark sets, clean and mistyped by program.
_KNOWN_WORD_BONUS = 10.0
_MARK = 6.0  # a mark beside a word in the wrong layout: its key is a letter in the right one
_ABBREVIATION = 4.0
_PLAUSIBLE = 3.3  # mean cost per letter pair of what looks like a word already
_ALONE = 6.0  # the most that a short or plausible word gains: not enough without its neighbours


def layout(text: str, vocabulary: Vocabulary = EMPTY) -> str | None:
    """Return `text` with words typed in the wrong layout repaired, or None if there are no such words.

    Both directions, word by word: a phrase may mix words, codes and names that are right already. A word is read
    anew when the other layout makes a likelier word of it, by letter pairs, frequent words and `vocabulary`.
    """
    repaired, shouted = text, is_shouted(text)
    for script, table in ((_LATIN, _TO_CYRILLIC), (_CYRILLIC, _TO_LATIN)):
        readings = [
            max(_readings(match, table, vocabulary, shouted=shouted), key=lambda reading: reading.gain)
            for match in _TOKEN.finditer(text)
            if _one_layout(match.group(), script)
        ]
        for reading in switched(readings):
            repaired = repaired[: reading.start] + reading.texts[0] + repaired[reading.end :]
    return repaired if repaired != text else None


def _one_layout(token: str, script: re.Pattern[str]) -> bool:
    other = _CYRILLIC if script is _LATIN else _LATIN
    return (
        bool(script.search(token))
        and not other.search(token)
        and not _NOT_TYPED_WORDS.search(token.lstrip(_OPENING).rstrip(_CLOSING))
    )


def _readings(
    match: re.Match[str], table: dict[int, int], vocabulary: Vocabulary, *, shouted: bool
) -> Iterator[Reading]:
    """Yield the token read in the other layout; a mark at either end may be a letter there or a mark after all."""
    token = match.group()
    to_russian = table is _TO_CYRILLIC
    bare_start = len(token) - len(token.lstrip(_OPENING))
    bare_end = max(bare_start + 1, len(token.rstrip(_CLOSING)))
    typed = token[bare_start:bare_end]
    typed_letters = _letter_cost(typed, russian=not to_russian)
    typed_cost = typed_letters - _familiarity(typed, vocabulary)
    abbreviation = typed.isupper() and len(typed) > 1 and not shouted
    if abbreviation:
        typed_cost -= _ABBREVIATION
    # Names are written so in either layout and say nothing of the rest.
    name = abbreviation or (vocabulary.holds(typed) and not is_frequent(typed))
    doubtful = len(typed) > 2 and typed_letters > _PLAUSIBLE * (len(typed) + 1)
    for start in range(max(0, bare_start - _MAX_MARKS), bare_start + 1):
        for end in range(bare_end, min(len(token), bare_end + _MAX_MARKS) + 1):
            before, read, after = token[:start], token[start:end].translate(table), token[end:]
            word = read.lstrip(_OPENING).rstrip(_CLOSING)
            marks = len(read) - len(word) + sum(char in _LATIN_KEYS for char in before + after)
            cost = _letter_cost(word, russian=to_russian) - _familiarity(word, vocabulary)
            gain = typed_cost - cost - _MARK * marks
            token_read = (
                before.translate(_MARKS) + read + after.translate(_MARKS) if to_russian else before + read + after
            )
            gain = gain if doubtful else min(gain, _ALONE)
            if _is_code(typed) and not _is_code(word.translate(CYRILLIC_LOOKALIKES)):
                gain = -_KNOWN_WORD_BONUS
            yield Reading(match.start(), match.end(), (token_read,), gain, 0.0 if name else gain)


def _is_code(word: str) -> bool:
    """Return whether `word` can be a code on a display: Latin letters, never a lone Y, and digits."""
    return word.isascii() and any(map(str.isdigit, word)) and not word.lower().startswith("y")


def _familiarity(word: str, vocabulary: Vocabulary) -> float:
    """Return the bonus for a known word. It is smaller for a short word."""
    return _KNOWN_WORD_BONUS * min(1.0, len(word) / 3) if word and vocabulary.knows(word) else 0.0


def _letter_cost(word: str, *, russian: bool) -> float:
    """Cost of the letters. Digits are the same keys in both layouts, so that a code is left to its neighbours."""
    if any(map(str.isdigit, word)):
        return 0.0
    return letters("ru").cost(fold(word)) if russian else letters("en").cost(fold(word).replace("'", ""))
