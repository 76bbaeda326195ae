"""The result type of all format readers, and the size limits of a file; the sandbox limits time and memory.

Imports nothing heavy: the sandbox's worker loads this on each start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from components.turn import Frozen

if TYPE_CHECKING:
    from tenants.core.json import Json

MAX_PARTS = 10_000
"""Maximum number of files in a packed document (DOCX, XLSX)."""
MAX_UNPACKED_BYTES = 200_000_000
"""Maximum total size of these files, unpacked."""
MAX_RATIO = 200
"""Maximum compression ratio of a file; text compresses tenfold, repetitive text a hundredfold."""
MAX_CELLS = 300_000
"""Cells of a spreadsheet over all of its sheets, the empty ones between filled ones included: what can be read in half
of the time that a file has."""
MAX_PAGES = 10_000
"""Maximum number of pages of a PDF."""
MAX_DEPTH = 200
"""Maximum nesting of HTML elements."""

Markup = Literal["markdown", "plain", "faq"]
FileFlag = Literal["hidden_text", "scanned_pages", "hidden_sheets", "faq_incomplete", "rows_overlong"]
"""Warnings about a file, shown to operators."""


@dataclass(frozen=True, slots=True)
class Parsed(Frozen):
    """A file as one document.

    :param title: empty when the file names none.
    :param markup: how `text` is written; `faq` is Markdown with one `## question` section per pair.
    :param meta: what the file says about itself, by the keys of an article.
    :param pages: pages or sheets, 0 for a format that has none.
    """

    title: str
    text: str
    markup: Markup = "markdown"
    meta: "Mapping[str, Json]" = field(default_factory=dict)
    flags: tuple[FileFlag, ...] = ()
    pages: int = 0
