"""The whole section around each hit, because an answer needs a procedure from its first step to its last."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from haystack import Document, component

from components.faults import degraded
from components.ingest.tokens import count_tokens
from components.language.captions import HEADING_SEPARATOR, heading_line
from components.language.normalise import fold
from components.passages import Chunk, from_payload, to_passage, with_meta
from components.turn import Passage
from tenants.index import open_collection

_MAX_REPEATED = 12
"""Maximum number of sentences that a chunk repeats from the previous one."""
_WORD = re.compile(r"\w+")
_HOST = re.compile(r"\A\w+://[^/]*/?")
_STEP = re.compile(r"^(\d{1,3})[.)] ", re.MULTILINE)


@component
class SectionExpander:
    """Replace each of the best chunks by its section, or by its whole document if that is short.

    Lower-ranked chunks get less text around them, so that more sections fit.

    Chunks of one section become one document with the score and metadata of the best of them, so evidence is read once
    and in order. A section that is too long is cut around its best chunk, if possible not within a procedure;
    `meta["begins_earlier"]` and `meta["continues"]` say so. With `with_opening`, it may be as long as a procedure to
    include its start, which says what it is about, or at least its first chunk; `meta["gap"]` is where chunks between
    are left out. No document is added once `budget` is spent. The chunks around a hit are named in its metadata; one of
    an older index that names none passes unchanged. If the sections cannot be read, all chunks pass unchanged, and the
    turn is degraded (`section`).

    :param budget: tokens of all documents together.
    :param section_tokens: maximum number of tokens of one section, unless a procedure is longer.
    :param procedure_tokens: tokens of a procedure that is taken whole.
    :param document_chunks: chunks of a document that is short enough to be taken whole, 4 at most.
    :param whole_sections: number of best sections that may be this long; all by default.
    :param excerpt_tokens: tokens of each later section, unless it is a procedure: up to half of `procedure_tokens`.
    :param opening_tokens: up to this length, an opening is read with the chunk after it, because it says what the
        first section is about.
    :param with_opening: whether a section that is taken whole keeps its first chunk if it has to be cut.
    :param top_k: maximum number of sections returned.

    ```python
    SectionExpander(budget=3_000).run(documents=ranked)["documents"]
    ```
    """

    def __init__(
        self,
        budget: int = 3_300,
        section_tokens: int = 1_100,
        procedure_tokens: int = 1_900,
        document_chunks: int = 3,
        top_k: int = 12,
        whole_sections: int | None = None,
        excerpt_tokens: int = 300,
        opening_tokens: int = 100,
        with_opening: bool = False,
    ) -> None:
        self.budget = budget
        self.section_tokens = section_tokens
        self.procedure_tokens = procedure_tokens
        self.document_chunks = document_chunks
        self.top_k = top_k
        self.whole_sections = whole_sections
        self.excerpt_tokens = excerpt_tokens
        self.opening_tokens = opening_tokens
        self.with_opening = with_opening

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
            chunks = sections[document.id]
            in_full = self.whole_sections is None or len(expanded) < self.whole_sections
            limits = (
                (self.section_tokens, self.procedure_tokens)
                if in_full
                else (self.excerpt_tokens, self.procedure_tokens // 2)
            )
            fitting = _fitting(
                document, chunks, *(min(tokens, left) for tokens in limits), opening=self.with_opening and in_full
            )
            section = joined(document, fitting, self._own(to_passage(document)))
            cost = count_tokens(section.content or "")
            if cost > left and expanded:
                continue
            left -= cost
            taken.update(chunk.id for chunk in (chunks if in_full else fitting))
            expanded.append(section)
        return {"documents": _told_apart(expanded)}

    def _sections(self, documents: Sequence[Document]) -> Mapping[str, tuple[Document, ...]]:
        """Return the chunks of each document's section in reading order, in one read of the index."""
        wanted = {document.id: self._ids(document) for document in documents}
        known = {document.id: document for document in documents}
        missing = {chunk_id for ids in wanted.values() for chunk_id in ids} - known.keys()
        if missing:
            for hit in open_collection().fetch(sorted(missing)):
                chunk = from_payload(hit.payload, 0.0, {})
                known[chunk.id] = chunk
        return {hit: tuple(known[chunk_id] for chunk_id in ids if chunk_id in known) for hit, ids in wanted.items()}

    def _ids(self, document: Document) -> Sequence[str]:
        """Return the ids of the chunks to read with a chunk, its own included."""
        around = document.meta.get("around")
        if not around:
            return (document.id,)
        first, last = self._own(to_passage(document))
        if around["total"] <= self.document_chunks:
            first, last = 0, around["total"] - 1
        return [chunk_id for place, chunk_id in enumerate(around["ids"], around["first"]) if first <= place <= last]

    def _own(self, passage: Passage) -> tuple[int, int]:
        """Return the first and the last chunk of the passage's section. A short opening takes the next chunk, too."""
        first, last = passage.section or (passage.chunk_index, passage.chunk_index)
        if not passage.heading and count_tokens(passage.text) <= self.opening_tokens:
            last += 1
        return first, last


def _told_apart(documents: Sequence[Document]) -> list[Document]:
    """Return the documents, with `meta["place"]` where several share a title.

    Help centres have an "Overview" for each product. The path of its address, or its id, says which one it is about.
    """
    passages = [to_passage(document) for document in documents]
    named = defaultdict[str, set[str]](set)
    for passage in passages:
        named[fold(passage.title)].add(passage.doc_id)
    return [
        # Front matter may have a field of this name, too.
        with_meta(document, place=_place(passage) if passage.title and len(named[fold(passage.title)]) > 1 else "")
        for document, passage in zip(documents, passages, strict=True)
    ]


def _place(passage: Passage) -> str:
    return _HOST.sub("", passage.url or "").strip("/") or passage.doc_id


def _fitting(
    hit: Document, chunks: Sequence[Document], section_tokens: int, procedure_tokens: int, *, opening: bool
) -> Sequence[Document]:
    """Return the procedure around the hit, or the hit alone, and as much of the rest of the section as fits.

    :param opening: whether to reach back to the section's start, or at least to include its first chunk.
    """
    costs = [count_tokens(chunk.content or "") for chunk in chunks]
    at = next(place for place, chunk in enumerate(chunks) if chunk.id == hit.id)
    start, end = _procedure([chunk.content or "" for chunk in chunks], at)
    if sum(costs[start:end]) > procedure_tokens:
        start, end = at, at + 1
    first = 0
    if opening and start > 0 and _is_opening(chunks[0]):
        if sum(costs[:end]) <= procedure_tokens:
            start = 0
        elif costs[0] + sum(costs[start:end]) <= procedure_tokens:
            first = 1
    spent = sum(costs[:first]) + sum(costs[start:end])
    while start > first and spent + costs[start - 1] <= section_tokens:
        start -= 1
        spent += costs[start]
    while end < len(chunks) and spent + costs[end] <= section_tokens:
        spent += costs[end]
        end += 1
    return [*chunks[:first], *chunks[start:end]]


def _is_opening(chunk: Document) -> bool:
    """Return whether the section begins with the chunk. The index names only so many chunks around a hit."""
    passage = to_passage(chunk)
    return passage.section is None or passage.section[0] == passage.chunk_index


def _procedure(texts: Sequence[str], at: int) -> tuple[int, int]:
    """Return the range of chunks with the steps of one procedure; only the chunk itself outside a procedure."""
    steps = [int(match[1]) if (match := _STEP.search(text)) else 0 for text in texts]

    def goes_on(place: int) -> bool:
        """Return whether a chunk begins with a step that is not the first, or is a part of one."""
        return steps[place] > 1 or (steps[place] == 0 and place + 1 < len(steps) and steps[place + 1] > 1)

    start, end = at, at + 1
    while start > 0 and goes_on(start):
        start -= 1
    while end < len(texts) and goes_on(end):
        end += 1
    return start, end


def joined(hit: Document, chunks: Sequence[Document], own: tuple[int, int] | None = None) -> Document:
    """Join chunks in reading order into one document with the hit's metadata; drop their overlaps.

    A small section keeps its heading above its text if the heading differs from the first one.

    :param own: the first and the last chunk of the hit's section. If the document has others, `meta["hit_section"]`
        says where it is.
    """
    section = to_passage(hit).section
    if len(chunks) == 1 and section is None:
        return hit
    passages = [to_passage(chunk) for chunk in chunks]
    text = ""
    spans: list[tuple[int, int]] = []
    heading: str | None = None
    before: Passage | None = None
    gap = 0
    own_headings: list[str] = []
    own_start, own_end = 0, 0
    for passage in passages:
        if before is not None and passage.chunk_index > before.chunk_index + 1:
            gap, before = len(text), None
        skipped = _repeated(before, passage) if before is not None else 0
        start = passage.sentences[skipped][0] if skipped < len(passage.sentences) else len(passage.text)
        start = 0 if not skipped else start
        body = passage.text[start:].strip("\n")
        start += len(passage.text[start:]) - len(passage.text[start:].lstrip("\n"))
        if passage.heading != heading and heading is not None and passage.heading:
            line = heading_line(passage.heading)
            spans.append((len(text) + 2, len(text) + 2 + len(line)))
            text += f"\n\n{line}\n\n"
        elif text:
            text += "\n" if skipped else "\n\n"
        heading = passage.heading
        shift = len(text) - start
        if own and own[0] <= passage.chunk_index <= own[1]:
            own_start = own_start if own_headings else len(text)
            own_end = len(text) + len(body)
            own_headings.append(passage.heading)
        text += body
        spans += [(a + shift, b + shift) for a, b in passage.sentences[skipped:] if a >= start]
        before = passage
    first, last = passages[0], passages[-1]
    section = section or (first.chunk_index, last.chunk_index)
    meta = {
        **hit.meta,
        "heading": _common([passage.heading for passage in passages]),
        "chunk_index": first.chunk_index,
        "sentences": tuple(spans),
        "chunk_ids": tuple(passage.chunk_id for passage in passages),
        "begins_earlier": first.chunk_index > section[0],
        "gap": gap,
        "continues": last.chunk_index < section[1],
    }
    if 0 < len(own_headings) < len(passages):
        meta["hit_section"] = {"start": own_start, "end": own_end, "heading": _common(own_headings)}
    return Chunk(id=hit.id, content=text, meta=meta, score=hit.score)


def _common(headings: Sequence[str], separator: str = HEADING_SEPARATOR) -> str:
    """Return the path that all headings share; the first heading where they share none."""
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
    """Count the sentences at the start of a chunk that repeat the one before: heading, end, header of a table."""
    headings = [_words(heading) for heading in before.heading.split(HEADING_SEPARATOR) if heading]
    earlier = [_words(before.text[a:b]) for a, b in before.sentences]
    opening = [_words(following.text[a:b]) for a, b in following.sentences[:_MAX_REPEATED]]
    # The end of a section that was merged with the next one names its own heading.
    named = next((at for at, words in enumerate(opening) if words not in headings), len(opening))
    last_words = [word for words in earlier[-2 * _MAX_REPEATED :] for word in words]
    for size in range(len(opening), named, -1):
        repeated = [word for words in opening[named:size] for word in words]
        if repeated and last_words[-len(repeated) :] == repeated:
            return size
    rows = [following.text[a:b] for a, b in following.sentences[:2]]
    if rows and all(row.lstrip().startswith("|") and row in before.text for row in rows):
        return len(rows)
    return named


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))
