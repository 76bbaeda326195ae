"""The whole section around each hit, because an answer needs a procedure from its first step to its last."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import groupby

from haystack import Document, component

from components.faults import degraded
from components.ingest.tokens import count_tokens
from components.language.normalise import fold
from components.passages import Chunk, from_payload, to_passage
from components.turn import Passage
from tenants.index import open_collection
from tenants.knowledge import documents as records

_CHUNKS_AROUND = 6
"""Most chunks of a section read on either side of a hit; a section is cut to its token budget afterwards."""
_MAX_REPEATED = 12
"""Sentences that a chunk repeats of the one before it, at most."""
_WORD = re.compile(r"\w+")

_PATIENCE_SECONDS = 0.5
"""How long a turn waits for the records: if they hang, it goes on with the chunks alone."""

_READERS = ThreadPoolExecutor(8, "sections")


@component
class SectionExpander:
    """Replace each chunk by the section it belongs to, or by its whole document where that is short.

    Chunks of one section become one document with the score and metadata of the best of them, so evidence is read once
    and in order. A section longer than `section_tokens` is cut around its best chunk, `meta["truncated"]` says so, and
    no document is added once `budget` is spent. If the sections cannot be read, chunks pass unchanged and the turn is
    degraded (`section`).

    :param budget: tokens of all documents together.
    :param section_tokens: tokens of one section at most.
    :param document_chunks: chunks of a document that is short enough to be taken whole.
    :param top_k: sections returned at most.

    ```python
    SectionExpander(budget=3_000).run(documents=ranked)["documents"]
    ```
    """

    def __init__(
        self, budget: int = 3_300, section_tokens: int = 1_100, document_chunks: int = 3, top_k: int = 12
    ) -> None:
        self.budget = budget
        self.section_tokens = section_tokens
        self.document_chunks = document_chunks
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return sections in the order of their best chunks.

        :param documents: ranked chunks, best first.
        """
        try:
            sections = self._sections(documents)
        except Exception as error:
            degraded("section", error)
            sections = {document.id: (document,) for document in documents}
        expanded: list[Document] = []
        taken: set[str] = set()
        left = self.budget
        for document in documents:
            if document.id in taken or len(expanded) == self.top_k:
                continue
            chunks = sections.get(document.id, (document,))
            section = joined(document, self._fitting(document, chunks))
            cost = count_tokens(section.content or "")
            if cost > left and expanded:
                continue
            left -= cost
            taken.update(chunk.id for chunk in chunks)
            expanded.append(section)
        return {"documents": expanded}

    def _sections(self, documents: Sequence[Document]) -> Mapping[str, tuple[Document, ...]]:
        """The chunks of each document's section in reading order: one read of the records, one of the index."""
        passages = {document.id: to_passage(document) for document in documents}
        doc_ids = sorted({passage.doc_id for passage in passages.values()})
        stored = _READERS.submit(copy_context().run, records.find, doc_ids).result(_PATIENCE_SECONDS)
        wanted: dict[str, tuple[str, ...]] = {}
        for passage in passages.values():
            record = stored.get(passage.doc_id)
            wanted[passage.chunk_id] = self._ids(passage, record.chunk_ids if record else ())
        known = {document.id: document for document in documents}
        missing = {chunk_id for ids in wanted.values() for chunk_id in ids} - known.keys()
        if missing:
            for hit in open_collection().fetch(sorted(missing)):
                chunk = from_payload(hit.payload, 0.0, {})
                known[chunk.id] = chunk
        return {
            chunk_id: tuple(known[one] for one in ids if one in known) or (known[chunk_id],)
            for chunk_id, ids in wanted.items()
        }

    def _ids(self, passage: Passage, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids of the chunks to read with a passage; its own alone where the document was rewritten since."""
        at = passage.chunk_index
        if at >= len(ids) or ids[at] != passage.chunk_id:
            return (passage.chunk_id,)
        if len(ids) <= self.document_chunks:
            return tuple(ids)
        first, last = passage.section or (at, at)
        return tuple(ids[max(first, at - _CHUNKS_AROUND) : min(last, at + _CHUNKS_AROUND) + 1])

    def _fitting(self, hit: Document, chunks: Sequence[Document]) -> Sequence[Document]:
        """The chunks that fit the budget of a section, from its start if the hit is among them, else up to the hit."""
        costs = [count_tokens(chunk.content or "") for chunk in chunks]
        at = next((place for place, chunk in enumerate(chunks) if chunk.id == hit.id), 0)
        start, end, spent = at, at + 1, costs[at]
        while start > 0 and spent + costs[start - 1] <= self.section_tokens:
            start -= 1
            spent += costs[start]
        while end < len(chunks) and spent + costs[end] <= self.section_tokens:
            spent += costs[end]
            end += 1
        return chunks[start:end]


def joined(hit: Document, chunks: Sequence[Document]) -> Document:
    """Consecutive chunks as one document with the hit's metadata; what a chunk repeats of the one before is dropped.

    Headings of small sections that differ from the first one stand above their text.
    """
    if len(chunks) == 1 and chunks[0].id == hit.id:
        return hit
    passages = [to_passage(chunk) for chunk in chunks]
    text = ""
    spans: list[tuple[int, int]] = []
    heading: str | None = None
    before: Passage | None = None
    for passage in passages:
        skipped = _repeated(before, passage) if before is not None else 0
        start = passage.sentences[skipped][0] if skipped < len(passage.sentences) else len(passage.text)
        start = 0 if not skipped else start
        body = passage.text[start:].strip("\n")
        start += len(passage.text[start:]) - len(passage.text[start:].lstrip("\n"))
        if passage.heading != heading and heading is not None and passage.heading:
            text += f"\n\n### {passage.heading}\n\n"
        elif text:
            text += "\n" if skipped else "\n\n"
        heading = passage.heading
        shift = len(text) - start
        text += body
        spans += [(a + shift, b + shift) for a, b in passage.sentences[skipped:] if a >= start]
        before = passage
    section = to_passage(hit).section
    indexes = [passage.chunk_index for passage in passages]
    cut = section is not None and (min(indexes) > section[0] or max(indexes) < section[1])
    first = passages[0]
    meta = {
        **hit.meta,
        "heading": _common([passage.heading for passage in passages]),
        "chunk_index": first.chunk_index,
        "sentences": tuple(spans),
        "chunk_ids": tuple(passage.chunk_id for passage in passages),
        "truncated": cut,
    }
    return Chunk(id=hit.id, content=text, meta=meta, score=hit.score)


def _common(headings: Sequence[str], separator: str = " › ") -> str:
    """The path that all headings share; the first heading where they share none."""
    distinct = [heading for heading, _ in groupby(headings)]
    if len(set(distinct)) == 1:
        return distinct[0]
    paths = [heading.split(separator) for heading in distinct]
    shared = []
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return separator.join(shared)


def _repeated(before: Passage, following: Passage) -> int:
    """How many sentences at the start of a chunk only repeat the end of the one before, or its table's header."""
    earlier = [_words(before.text[a:b]) for a, b in before.sentences]
    opening = [_words(following.text[a:b]) for a, b in following.sentences[:_MAX_REPEATED]]
    last_words = [word for words in earlier[-2 * _MAX_REPEATED :] for word in words]
    for size in range(len(opening), 0, -1):
        repeated = [word for words in opening[:size] for word in words]
        if repeated and last_words[-len(repeated) :] == repeated:
            return size
    rows = [following.text[a:b] for a, b in following.sentences[:2]]
    if rows and all(row.lstrip().startswith("|") and row in before.text for row in rows):
        return len(rows)
    return 0


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))
