"""A document as people read it: its sections in order, with the heading paths that its chunks have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.ingest.cut import safe_blocks_of
from components.ingest.document import SourceDocument
from components.ingest.markdown import Block
from components.ingest.pack import sections_of
from components.language.captions import HEADING_SEPARATOR
from components.turn import Frozen


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


def read(document: SourceDocument) -> Iterator[Section]:
    """Yield the sections of a document."""
    for path, blocks in sections_of(safe_blocks_of(document), document.title):
        heading = HEADING_SEPARATOR.join(path)
        yield Section(heading, path[-1] if path else "", len(path), _markdown(blocks))


def _markdown(blocks: Sequence[Block]) -> str:
    text = ""
    for at, block in enumerate(blocks):
        tight = at and block.kind == blocks[at - 1].kind == "item"
        text += ("\n" if tight else "\n\n" if at else "") + block.text
    return text
