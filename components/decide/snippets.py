"""Snippets of offered articles: the sentences of a section that fit the question best, and the heading above them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten

from components.judge.approaches import proposed
from components.language.captions import section_path
from components.language.marks import FENCE, HEADING, HEADING_LINE, ITEM
from components.language.words import stems
from components.turn import Passage, Query, RejectedApproach, Turn

_MAX_LENGTH = 240
"""Characters of a snippet, enough for two sentences."""
_MIN_WORDS = 3
_HEADING_SHARE = 0.8
"""Weight of a word in the heading above a sentence against one in the sentence."""
# Where no sentence shares a word with the question, the opening one says best what a section is about.
_EARLY = 0.01
_UNSHOWN = re.compile(rf"\s*(?:{HEADING}\s|{FENCE}|\|[\s|:=+-]*\Z)")
_BELOW_HEADER = re.compile(r"\s*\|[\s|:=+-]*(?:\n|\Z)")
_MARKER = re.compile(rf"\A\s*(?:{ITEM}\s+|\|\s*)")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Sentences on one line, and the heading path of the section that they are in."""

    text: str
    heading: str


@dataclass(frozen=True, slots=True)
class _Line:
    """A sentence that may be shown. `place` counts all sentences, `section` is the heading line above it."""

    text: str
    place: int
    section: str
    is_row: bool


def snippet(passage: Passage, query: Query, turn: Turn) -> Snippet:
    """Return the sentences of a passage nearest to the query; an empty text if none may be quoted.

    A passage of several small sections has their headings as lines of its text; the snippet is of one of them.
    """
    lines = list(_lines(passage, turn.rejected))
    openings = [line for line in lines if len(line.text.split()) >= _MIN_WORDS and not line.text.endswith(":")]
    if not openings:
        return Snippet("", passage.heading)
    best = max(openings, key=lambda line: _fit(line, query) - _EARLY * line.place)
    return Snippet(_extended(best, lines), section_path(passage.heading, best.section))


def _lines(passage: Passage, rejected: tuple[RejectedApproach, ...]) -> Iterator[_Line]:
    """Yield the sentences that may be shown."""
    headings = [(match.start(), match[1]) for match in HEADING_LINE.finditer(passage.text)]
    for place, (start, end) in enumerate(passage.sentences):
        said = passage.text[start:end]
        if _UNSHOWN.match(said) or _BELOW_HEADER.match(passage.text, end):
            continue
        line = " ".join(_MARKER.sub("", said, count=1).rstrip("| ").split())
        if not any(proposed(line, approach) for approach in rejected):
            section = next((heading for at, heading in reversed(headings) if at < start), "")
            yield _Line(line, place, section, said.lstrip().startswith("|"))


def _fit(line: _Line, query: Query) -> float:
    """Return the weight of the query's words that a sentence has, those of its heading in part."""
    said, above = frozenset(stems(line.text)), frozenset(stems(line.section))
    return sum(
        weight * (1.0 if stem in said else _HEADING_SHARE if stem in above else 0.0)
        for stem, weight in query.weights.items()
    )


def _extended(best: _Line, lines: list[_Line]) -> str:
    """Return a sentence with as many sentences of its section after it as fit, then with those before it."""
    if best.is_row:
        return shorten(best.text, _MAX_LENGTH, placeholder="…")
    section = [line for line in lines if line.section == best.section and not line.is_row]
    at = section.index(best)
    first, last = at, at
    while last + 1 < len(section) and _length(section[first : last + 2]) <= _MAX_LENGTH:
        last += 1
    while first > 0 and _length(section[first - 1 : last + 1]) <= _MAX_LENGTH:
        first -= 1
    while last > at and section[last].text.endswith(":"):
        last -= 1
    return shorten(" ".join(line.text for line in section[first : last + 1]), _MAX_LENGTH, placeholder="…")


def _length(lines: list[_Line]) -> int:
    return len(" ".join(line.text for line in lines))
