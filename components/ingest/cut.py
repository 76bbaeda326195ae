"""A document cut into chunks: what the splitter does to each, here or in a worker process.

Imports nothing heavy: worker processes load this on each start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from components.ingest.document import Chunk, SourceDocument
from components.ingest.markdown import Block, markdown_blocks, plain_blocks
from components.ingest.pack import Part, Sizes, packed
from components.ingest.safety import flags, hides_characters, inert, quotable
from components.language.captions import HEADING_SEPARATOR
from components.language.normalise import clean
from components.language.sentences import sentence_spans
from components.turn import Frozen
from tenants.core import fairness

if TYPE_CHECKING:
    from tenants.core.json import Json

_NAMESPACE = UUID("6f0ec5ce-52f3-5b3e-9a35-1c6c9d0f7a11")
_AROUND = 6
"""Maximum number of chunks of a section to read on either side of a chunk."""
_SHORT_DOCUMENT = 4
"""Maximum number of chunks of a document that is always read completely: each chunk lists all others."""
_EMPTY_SPACE = re.compile(r"(?<!\s)\s{200,}+")
"""White space that is shortened. It has no tokens, so a chunk with it could have any length."""
NAMELESS = "…"
"""The title of a document all of whose names give orders."""


@dataclass(frozen=True, slots=True)
class Cut(Frozen):
    """A document's own title and its chunks, ids and sentences included."""

    title: str
    chunks: tuple[Chunk, ...]


def cut(document: SourceDocument, sizes: Sizes) -> Cut:
    """Cut a document at headings, then paragraphs, then sentences."""
    fairness.yield_to_questions()
    blocks = safe_blocks_of(document)
    title = _title(document, blocks)
    # A question is its own best search key, so no pair of an FAQ is merged with another.
    parts = packed(blocks, title, sizes, apart=document.markup == "faq")
    return Cut(title, _identified(document.doc_id, parts, _flags(document)))


def safe_blocks_of(document: SourceDocument) -> tuple[Block, ...]:
    """Return the blocks of a document's text for readers. Headings that give orders become text.

    Text is checked by sentence, but headings are always shown.
    """
    text = _EMPTY_SPACE.sub(lambda space: "\n\n" if "\n" in space[0] else " ", clean(document.text))
    is_plain = document.markup == "plain"
    blocks = plain_blocks(_untitled(text, document.title)) if is_plain else markdown_blocks(text)
    return tuple(Block("prose", block.text, page=block.page) if _orders(block) else block for block in blocks)


def _untitled(text: str, title: str) -> str:
    """Return a text that opens with its own title, which is shown above it, without it."""
    opening, _, rest = text.strip().partition("\n")
    return rest if rest.strip() and " ".join(opening.split()).casefold() == title.strip().casefold() else text


def cut_all(documents: Sequence[SourceDocument], sizes: Sizes) -> list[Cut]:
    """Cut these documents."""
    return [cut(document, sizes) for document in documents]


def _orders(block: Block) -> bool:
    return block.kind == "heading" and "injection" in flags(block.text)


def _title(document: SourceDocument, blocks: tuple[Block, ...]) -> str:
    """Return the title, first heading, file name or id of the document: the first that gives no orders."""
    own_title = inert(clean(document.title).strip())
    # The first heading of an FAQ is one question of many.
    headings = (block.text for block in blocks if block.kind == "heading" and block.text and document.markup != "faq")
    heading = next(headings, "")
    # Many articles of one file would all get the same name from it.
    file = "" if document.line else document.source.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    names = [name for name in (own_title, heading, inert(file), inert(document.doc_id)) if name]
    return next((name for name in names if "injection" not in flags(name)), NAMELESS)


def _flags(document: SourceDocument) -> frozenset[str]:
    """Return the flags of the whole document: from its reader, its names and its invisible characters."""
    declared = document.meta.get("flags")
    all_flags = {str(flag) for flag in declared} if isinstance(declared, list | tuple) else set[str]()
    for name in (document.title, document.source, document.doc_id):
        all_flags.update(flags(name))
    if hides_characters(document.text):
        all_flags.add("hidden_characters")
    return frozenset(all_flags)


def _identified(doc_id: str, parts: list[Part], flagged: frozenset[str]) -> tuple[Chunk, ...]:
    """Chunks with ids made of their document and content, so that an unchanged chunk keeps its id wherever it moves."""
    occurrences: dict[str, int] = {}
    chunks = []
    for index, part in enumerate(parts):
        fairness.yield_to_questions()
        heading, text = HEADING_SEPARATOR.join(part.path), part.text
        digest = chunk_hash(heading, text)
        occurrence = occurrences[digest] = occurrences.get(digest, -1) + 1
        sentences = sentence_spans(text)
        allowed = quotable(text, sentences)
        chunk_flags = flagged if len(allowed) == len(sentences) else flagged | {"injection"}
        meta: dict[str, Json] = {"content_hash": digest, "flags": sorted(chunk_flags)}
        if part.page:
            meta["page"] = part.page
        meta["section_chunks"] = list(part.bounds)
        chunks.append(Chunk(text, heading, index, chunk_id(doc_id, digest, occurrence), allowed, meta))
    ids = [chunk.chunk_id for chunk in chunks]
    return tuple(
        replace(chunk, meta={**chunk.meta, "around": _around(ids, chunk.index, part)} if len(ids) > 1 else chunk.meta)
        for chunk, part in zip(chunks, parts, strict=True)
    )


def _around(ids: list[str], at: int, part: Part) -> "dict[str, Json]":
    """Return the chunks to read with a chunk, so that a question needs no other record to find them.

    These are its section, after the opening of a document the chunk that follows, or a short document.
    """
    first, last = part.bounds
    if len(ids) <= _SHORT_DOCUMENT:
        first, last = 0, len(ids) - 1
    elif not part.path:
        last = min(last + 1, len(ids) - 1)
    first, last = max(first, at - _AROUND), min(last, at + _AROUND)
    return {"first": first, "total": len(ids), "ids": [*ids[first : last + 1]]}


def chunk_id(doc_id: str, digest: str, occurrence: int) -> str:
    """Return a chunk id derived from its document, its content and the number of equal chunks before it."""
    return str(uuid5(_NAMESPACE, f"{doc_id}\n{digest}\n{occurrence}"))


def chunk_hash(heading: str, text: str) -> str:
    """Return the SHA-256 of a chunk's search data, except its document's title."""
    return sha256(f"{heading}\n\n{text}".encode()).hexdigest()
