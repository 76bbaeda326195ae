"""The values that travel through the ingest pipeline.

Imports nothing heavy: worker processes load this on each start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from components.ingest.formats.parsed import Markup
from components.turn import Frozen
from tenants.core.errors import CallerError

if TYPE_CHECKING:
    from tenants.core.json import Json


@dataclass(frozen=True, slots=True)
class SourceDocument(Frozen):
    """An article before processing.

    :param doc_id: id shown in citations; unique within a tenant.
    :param title: empty when the source has none; the first heading, then the file name take its place.
    :param source: the file it came from, relative to what was ingested.
    :param lang: ISO 639-1; detected from the letters if empty.
    :param meta: everything else that came with it. Known keys (`trust`, `status`, `priority`, `tags`, …) are checked.
    :param markup: how `text` is written; in an `faq` every section is a question with its answer.
    :param line: where it starts in its source, 0 when it is the whole source.
    :param pages: pages or sheets that were read for it, 0 for a format that has none.
    """

    doc_id: str
    title: str
    text: str
    source: str = ""
    url: str | None = None
    lang: str = ""
    meta: "Mapping[str, Json]" = field(default_factory=dict)
    markup: Markup = "markdown"
    line: int = 0
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Refusal(Frozen):
    """A document that was not ingested and why. `error` carries the stable code and the values for its text."""

    error: CallerError
    source: str = ""
    line: int = 0
    doc_id: str = ""


@dataclass(frozen=True, slots=True)
class Flagged(Frozen):
    """A document that was ingested but needs an operator's attention; `components.ingest.safety` defines the flags."""

    doc_id: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chunk(Frozen):
    """A part of a document that is retrieved, judged and quoted as a unit.

    :param text: what is stored and shown; the title and `heading` are not in it.
    :param heading: the path of headings below the title, joined by ` › `.
    :param sentences: those that may be quoted, as (start, end) character offsets into `text`.
    :param meta: the stored metadata, complete once the chunk has been enriched.
    """

    text: str
    heading: str
    index: int
    chunk_id: str = ""
    sentences: tuple[tuple[int, int], ...] = ()
    meta: "Mapping[str, Json]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revision(Frozen):
    """A new or changed document on its way into the index.

    :param content_hash: covers all that was given and the recipe it is processed by.
    :param title: the document's own title, resolved while splitting.
    """

    document: SourceDocument
    content_hash: str
    title: str = ""
    chunks: tuple[Chunk, ...] = ()
