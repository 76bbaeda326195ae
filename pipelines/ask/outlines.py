"""The sections of a published article, with the ids of their places on its page in the help centre."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.ingest import pack
from components.ingest.cut import safe_blocks_of
from components.ingest.document import SourceDocument
from components.ingest.markdown import Block
from components.ingest.records import source_document
from components.language.captions import HEADING_SEPARATOR
from components.retrieve.cache import TenantLruCache
from components.turn import Frozen
from tenants.core.errors import NotFound
from tenants.knowledge import versions
from tenants.knowledge.documents import DocumentRecord

_WORDS = re.compile(r"\w+")
_MAX_ANCHOR = 120


@dataclass(frozen=True, slots=True)
class Section(Frozen):
    """A section of a document.

    :param heading: the path of headings, as passages have it; empty before the first heading.
    :param level: how many headings the path has.
    :param markdown: CommonMark with tables. Emphasis, links, pictures and HTML of the source are not in it.
    """

    heading: str
    title: str
    level: int
    markdown: str


@dataclass(frozen=True, slots=True)
class AnchoredSection:
    anchor: str
    section: Section


_READ: TenantLruCache[tuple[AnchoredSection, ...]] = TenantLruCache(200)
"""Articles in memory, of all tenants together."""


def sections_of(record: DocumentRecord) -> tuple[AnchoredSection, ...]:
    """Return the sections of an article in their order.

    :raises NotFound: its text is not stored (`document_unknown`).
    """
    key = _READ.key(record.doc_id, record.version, record.content_hash)
    sections = _READ.get(key)
    if sections is None:
        stored = versions.get(record.doc_id, record.version)
        if stored is None:
            raise NotFound("document_unknown")
        sections = tuple(_anchored(_read(source_document(stored))))
        _READ.put(key, sections)
    return sections


def anchor(heading: str) -> str:
    """Return the id of a section on its article's page, which stays as long as its headings do."""
    return "-".join(_WORDS.findall(heading.casefold()))[:_MAX_ANCHOR]


def _anchored(sections: Iterator[Section]) -> Iterator[AnchoredSection]:
    """Yield sections with their anchors; the second of two with the same headings gets a number."""
    taken: defaultdict[str, int] = defaultdict(int)
    for section in sections:
        place = anchor(section.heading)
        taken[place] += 1
        number = taken[place]
        yield AnchoredSection(f"{place}-{number}" if number > 1 and place else place, section)


def _read(document: SourceDocument) -> Iterator[Section]:
    for path, blocks in pack.sections_of(safe_blocks_of(document), document.title):
        heading = HEADING_SEPARATOR.join(path)
        yield Section(heading, path[-1] if path else "", len(path), _markdown(blocks))


def _markdown(blocks: Sequence[Block]) -> str:
    text = ""
    for at, block in enumerate(blocks):
        tight = at and block.kind == blocks[at - 1].kind == "item"
        text += ("\n" if tight else "\n\n" if at else "") + block.text
    return text
