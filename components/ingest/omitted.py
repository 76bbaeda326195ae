"""Parts of a document's stored text that no chunk contains, with reasons, recomputed by the rules of chunking.

Text that the reader of a web page, a PDF or an office file skips is not part of the stored text.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from components.ingest.cut import blocks_of
from components.ingest.document import SourceDocument
from components.ingest.markdown import ANCHOR, HIDDEN, PAGE, TAG
from components.language.normalise import clean
from components.turn import Frozen

Why: TypeAlias = Literal["comment", "script", "picture", "tag", "anchor"]

MOST = 100
"""Maximum number of distinct pieces to list."""
MAX_LENGTH = 300_000
"""Maximum length of a text to analyse, in characters."""
_SHOWN = 200
_MOST_PIECES = 1_000
"""Distinct pieces that are looked for in the visible text; each takes a search of the whole of it."""

_CODE = re.compile(r"^[ ]{0,3}(```|~~~).*?(?:^[ ]{0,3}\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[((?:(?!!\[)[^\]\n])*+)\]\([^()\n]*+\)")


@dataclass(frozen=True, slots=True)
class Omitted(Frozen):
    """A piece of text that no chunk contains, with its number of occurrences. Long pieces are truncated."""

    why: Why
    text: str
    times: int


def omitted(document: SourceDocument) -> tuple[Omitted, ...] | None:
    """Return the omitted pieces in the order of the text; None if the text is too long to analyse."""
    if len(document.text) > MAX_LENGTH:
        return None
    text = clean(document.text)
    visible = "\n".join(block.text for block in blocks_of(document))
    counts = Counter(_pieces(text) if document.markup != "plain" else ())
    # What is visible was kept: the name of an icon, the same as code.
    left_out = (
        Omitted(why, _cut_short(" ".join(piece.split())), times)
        for (why, piece, shown), times in islice(counts.items(), _MOST_PIECES)
        if text.count(shown) > visible.count(shown)
    )
    return tuple(islice(left_out, MOST))


def _pieces(text: str) -> Iterator[tuple[Why, str, str]]:
    """Yield the reason, the piece, and the part of it that would be visible if it had been kept."""
    text = _CODE.sub("", text)
    pieces: list[tuple[int, Why, str, str]] = []
    for match in HIDDEN.finditer(text):
        if not PAGE.fullmatch(match[0]):
            pieces.append((match.start(), "script" if match[1] else "comment", match[0], match[0]))
    text = HIDDEN.sub(lambda match: " " * len(match[0]), text)
    for match in _PICTURE.finditer(text):
        pieces.append((match.start(), "picture", match[0], match[1].strip() or match[0]))
    rules: tuple[tuple[Why, re.Pattern[str]], ...] = (("tag", TAG), ("anchor", ANCHOR))
    for why, pattern in rules:
        pieces += [(match.start(), why, match[0], match[0].strip()) for match in pattern.finditer(text)]
    for _, why, piece, shown in sorted(pieces):
        yield why, piece, shown


def _cut_short(piece: str) -> str:
    return piece if len(piece) <= _SHOWN else f"{piece[:_SHOWN]}…"
