"""Documents cut into chunks."""

from dataclasses import replace
from hashlib import sha256
from uuid import UUID, uuid5

from haystack import component

from components.ingest.document import Chunk, Revision, SourceDocument
from components.ingest.markdown import Block, markdown_blocks, plain_blocks
from components.ingest.pack import Part, Sizes, packed
from components.ingest.safety import flags, hides_characters, inert, quotable
from components.language.normalise import clean
from components.language.sentences import sentence_spans
from tenants import fairness
from tenants.errors import InternalFault
from tenants.index.protocol import Json

VERSION = "3"
"""Raised whenever the same text is cut or cleaned differently, so that stored documents are split anew."""

_NAMESPACE = UUID("6f0ec5ce-52f3-5b3e-9a35-1c6c9d0f7a11")
HEADING_SEPARATOR = " › "
NAMELESS = "…"
"""The title of a document all of whose names give orders."""


@component
class DocumentSplitter:
    """Cuts documents into chunks at headings, then paragraphs, then sentences.

    A chunk belongs to one heading path, which is kept apart from its text. Tables, code and code entries ("E20 — …")
    stay whole up to `max_tokens`; a longer table is cut between rows with its header repeated.

    :param min_tokens: a chunk is closed at the first end of a paragraph from here on.
    :param max_tokens: the most a chunk holds, overlap included.
    :param overlap_tokens: what the next chunk of the same section repeats, in whole sentences.
    :param fragment_tokens: smaller chunks are merged with a neighbour, except under the heading of a code.
    """

    def __init__(
        self, min_tokens: int = 200, max_tokens: int = 500, overlap_tokens: int = 50, fragment_tokens: int = 50
    ) -> None:
        if not 0 <= 2 * overlap_tokens <= min_tokens <= max_tokens or max_tokens < 100 or fragment_tokens < 0:
            raise InternalFault("splitter_sizes_invalid", min_tokens=min_tokens, max_tokens=max_tokens)
        if fragment_tokens > max_tokens // 4:
            raise InternalFault("splitter_sizes_invalid", fragment_tokens=fragment_tokens, max_tokens=max_tokens)
        self.min_tokens = min_tokens
        self.max_tokens = max_tokens
        self.overlap_tokens = overlap_tokens
        self.fragment_tokens = fragment_tokens
        self._sizes = Sizes(min_tokens, max_tokens, overlap_tokens, fragment_tokens)

    @component.output_types(revisions=list[Revision])
    def run(self, revisions: list[Revision]) -> dict[str, list[Revision]]:
        """Fill in each revision's title and chunks, the chunks' ids and sentences included."""
        return {"revisions": [self._split(revision) for revision in revisions]}

    def _split(self, revision: Revision) -> Revision:
        fairness.give_way()
        document = revision.document
        text = clean(document.text)
        blocks = plain_blocks(text) if document.markup == "plain" else markdown_blocks(text)
        blocks = tuple(_demoted(block) if _orders(block) else block for block in blocks)
        title = _title(document, blocks)
        # A question is its own best search key, so no pair of an FAQ is merged with another.
        parts = packed(blocks, title, self._sizes, apart=document.markup == "faq")
        return replace(revision, title=title, chunks=_identified(document.doc_id, parts, _flags(document)))


def _orders(block: Block) -> bool:
    return block.kind == "heading" and "injection" in flags(block.text)


def _demoted(heading: Block) -> Block:
    """A heading that gives orders as a line of text: a chunk's text is looked at by sentence, its heading is shown."""
    return Block("prose", heading.text, page=heading.page)


def _title(document: SourceDocument, blocks: tuple[Block, ...]) -> str:
    """The title, or the first heading, or the file's name, or the document's id: the first that gives no orders."""
    given = inert(clean(document.title).strip())
    # The first heading of an FAQ is one question of many.
    headings = (block.text for block in blocks if block.kind == "heading" and document.markup != "faq")
    heading = next(headings, "")
    # Many articles of one file would all get the same name from it.
    file = "" if document.line else document.source.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    names = [name for name in (given, heading, inert(file), inert(document.doc_id)) if name]
    return next((name for name in names if "injection" not in flags(name)), NAMELESS)


def _flags(document: SourceDocument) -> frozenset[str]:
    """What holds for the document as a whole: what its reader found, what its names and invisible characters say."""
    told = document.meta.get("flags")
    found = {str(flag) for flag in told} if isinstance(told, list | tuple) else set[str]()
    for name in (document.title, document.source, document.doc_id):
        found.update(flags(name))
    if hides_characters(document.text):
        found.add("hidden_characters")
    return frozenset(found)


def _identified(doc_id: str, parts: list[Part], flagged: frozenset[str]) -> tuple[Chunk, ...]:
    """Chunks with ids made of their document and content, so that an unchanged chunk keeps its id wherever it moves."""
    seen: dict[str, int] = {}
    chunks = []
    for index, part in enumerate(parts):
        fairness.give_way()
        heading, text = HEADING_SEPARATOR.join(part.path), part.text
        digest = chunk_hash(heading, text)
        occurrence = seen[digest] = seen.get(digest, -1) + 1
        chunk_id = str(uuid5(_NAMESPACE, f"{doc_id}\n{digest}\n{occurrence}"))
        sentences = sentence_spans(text)
        allowed = quotable(text, sentences)
        own = flagged if len(allowed) == len(sentences) else flagged | {"injection"}
        meta: dict[str, Json] = {"content_hash": digest, "flags": sorted(own)}
        if part.page:
            meta["page"] = part.page
        chunks.append(Chunk(text, heading, index, chunk_id, allowed, meta))
    return tuple(chunks)


def chunk_hash(heading: str, text: str) -> str:
    """SHA-256 over all that a chunk is found by besides its document's title."""
    return sha256(f"{heading}\n\n{text}".encode()).hexdigest()
