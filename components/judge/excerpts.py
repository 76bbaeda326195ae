"""The parts of a passage that a claim is checked against, so that a model need not read the rest."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from components.language.marks import HEADING, ITEM
from components.language.normalise import fold
from components.language.words import stems
from components.turn import Passage

_SHORT = 400
"""Characters of a passage that is always shown whole."""
_KNOWN = 0.4
"""Share of a claim's words that the passage must hold. With fewer, other words say it, and any sentence may matter."""
_SAME_MATTER = 0.3
"""Share of the weight of a claim's words from which on a sentence is about the same matter. With 0.4, "Оплатить картой
курьеру нельзя" was left out beside "Оплата картой принимается".
"""
_RESTRICTS = re.compile(
    r"""\b(?:
        кроме|исключ(?:ени|ая)\w*|только|лишь|(?:если|больше|уже)\ не|теперь|(?:повыше|сниже|измене)н\w*
        |не\ (?:действу|распространя|относ|применя|касае|включ)\w*
        |except\w*|exclud\w*|unless|only|no\ longer|now|(?:raised|increased|reduced|changed)\ to
        |(?:do|does|is|are)(?:\ not|n't)\ (?:appl|includ|cover|valid)\w*
    )\b""",
    re.VERBOSE,
)
"""Words by which a sentence restricts or changes what another one says, however far away."""
_OF_ALL = frozenset("все всего только лишь all only".split())
"""Words of a claim that any sentence may disprove."""
_APART = 80
"""Characters of a part that is too short to leave out."""
_HEADING = re.compile(rf"\s*({HEADING})\s")
_DEEPEST = 6
_ROW = re.compile(r"\s*\|")
_ENTRY = re.compile(rf"\s*(?:{ITEM}\s|\|)")
_WORD = re.compile(r"\w+")
_FOOTNOTE = re.compile(r"\s*\\?\*")


def sentences_to_check(passage: Passage, claims: Sequence[str]) -> frozenset[int]:
    """Return the places of the sentences that the claims are checked against; of all where no choice is safe.

    These are the sentences about the same matter and those beside them; above them the headings, the lead-in of the
    list, the first rows of the table; below them the footnotes; and all sentences that restrict something.
    """
    texts = [passage.text[start:end] for start, end in passage.sentences]
    everything = frozenset(range(len(texts)))
    if sum(map(len, texts)) <= _SHORT:
        return everything
    said = [frozenset(stems(one)) for one in texts]
    spread = Counter(stem for one in said for stem in one)
    shown = set[int]()
    for place, text in enumerate(texts):
        if _RESTRICTS.search(fold(text)):
            shown |= {place, *_frame(place, texts)}
    for claim in claims:
        asked = frozenset(stems(claim))
        weights = {stem: 1 / spread[stem] for stem in asked if spread[stem]}
        if not weights or len(weights) < _KNOWN * len(asked) or not _OF_ALL.isdisjoint(_WORD.findall(fold(claim))):
            return everything
        for place in _about(weights, said):
            shown |= {place - 1, place, place + 1, *_frame(place, texts), *_footnotes(place, texts)} & everything
    return everything.difference(*_worth_leaving_out(shown, texts))


def _about(weights: dict[str, float], said: Sequence[frozenset[str]]) -> set[int]:
    """Return the places of the sentences that share much of a claim's words, rare ones counting more, and of those
    that hold the rest of its words.
    """

    def weight(place: int, wanted: frozenset[str]) -> float:
        return sum(weights[stem] for stem in said[place] & wanted)

    wanted = frozenset(weights)
    enough = _SAME_MATTER * sum(weights.values())
    chosen = {place for place in range(len(said)) if weight(place, wanted) >= enough}
    missing = wanted.difference(*(said[place] for place in chosen))
    while missing:
        best = max(range(len(said)), key=lambda place: weight(place, missing))
        chosen.add(best)
        missing -= said[best]
    return chosen


def _frame(place: int, texts: Sequence[str]) -> Iterator[int]:
    """Yield the places of the headings, the lead-in and the first rows of the table above a sentence."""
    first = place
    while first > 0 and _ENTRY.match(texts[first]):
        first -= 1
        if not _ENTRY.match(texts[first]):
            yield first
    if _ROW.match(texts[place]):
        start = first if _ROW.match(texts[first]) else first + 1
        yield from (start, start + 1)
    level = _DEEPEST + 1
    for one in range(place - 1, -1, -1):
        heading = _HEADING.match(texts[one])
        if heading and len(heading[1]) < level:
            yield one
            level = len(heading[1])


def _footnotes(place: int, texts: Sequence[str]) -> Iterator[int]:
    """Yield the place of the sentence below the list or table of a sentence, and of the footnotes that follow it."""
    part = next((kind for kind in (_ROW, _ENTRY) if kind.match(texts[place])), None)
    if part is None:
        return
    below = next((one for one in range(place, len(texts)) if not part.match(texts[one])), len(texts))
    yield below
    while below + 1 < len(texts) and _FOOTNOTE.match(texts[below + 1]):
        below += 1
        yield below


def _worth_leaving_out(shown: set[int], texts: Sequence[str]) -> Iterator[set[int]]:
    """Yield the parts between the sentences shown that are long enough to be left out."""
    part = set[int]()
    for place in range(len(texts) + 1):
        if place < len(texts) and place not in shown:
            part.add(place)
            continue
        if sum(len(texts[one]) for one in part) >= _APART:
            yield part
        part = set()
