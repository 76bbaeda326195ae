"""Cuts long texts in worker processes, so that none of them delays a question or takes all memory.

A little text is cut right here, because handing it over would take longer. Either way the results are the same
and in the same order. A worker that a text has taken over must not change the documents of the next tenant, so a
chunk's id is computed again from the document it was cut from.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from pydantic import JsonValue, StrictInt, StrictStr

from components.ingest.cut import Cut, chunk_hash, chunk_id, cut_all
from components.ingest.document import Chunk, SourceDocument
from components.ingest.pack import Sizes
from components.ingest.sandbox import Answer, Form, Sandbox
from tenants.core.errors import CallerError, Invalid, TryAgain

_AT_HAND = 20_000
"""Characters processed in this process: about ten chunks, which take as long as starting a worker."""


class _ChunkForm(Form):
    text: StrictStr
    heading: StrictStr
    index: StrictInt
    chunk_id: StrictStr
    sentences: tuple[tuple[StrictInt, StrictInt], ...]
    meta: dict[StrictStr, JsonValue]


class _CutForm(Form):
    title: StrictStr
    chunks: tuple[_ChunkForm, ...]

    def of(self, document: SourceDocument) -> Cut:
        """Return the document cut. Raise `ValueError` for chunks of another one."""
        occurrences: Counter[str] = Counter()
        chunks = []
        for at, chunk in enumerate(self.chunks):
            digest = chunk_hash(chunk.heading, chunk.text)
            expected = (at, chunk_id(document.doc_id, digest, occurrences[digest]), digest)
            if (chunk.index, chunk.chunk_id, chunk.meta.get("content_hash")) != expected:
                raise ValueError("chunk of another document")
            if any(not 0 <= start <= end <= len(chunk.text) for start, end in chunk.sentences):
                raise ValueError("sentence out of bounds")
            occurrences[digest] += 1
            chunks.append(Chunk(chunk.text, chunk.heading, at, chunk.chunk_id, chunk.sentences, chunk.meta))
        return Cut(self.title, tuple(chunks))


class TextProcesses(Sandbox):
    """Cuts text in worker processes. Thread-safe."""

    def cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> list[Cut | CallerError]:
        """Return each document cut, or the error: `file_too_slow`, `file_too_demanding`, `file_too_deep`."""
        if sum(len(document.text) for document in documents) <= _AT_HAND:
            return [*cut_all(documents, sizes)]
        return [*self._cut(documents, sizes)]

    def _cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> Sequence[Cut | CallerError]:
        request = {"documents": [_request(document) for document in documents], "sizes": asdict(sizes)}
        try:
            forms = self.call("cut", "", json.dumps(request).encode(), Answer[tuple[_CutForm, ...]])
            return [form.of(document) for form, document in zip(forms, documents, strict=True)]
        except TryAgain:
            return cut_all(documents, sizes)
        except (CallerError, ValueError) as failed:
            if len(documents) == 1:
                return [failed if isinstance(failed, CallerError) else Invalid("file_damaged")]
            return [cut for document in documents for cut in self._cut([document], sizes)]


def _request(document: SourceDocument) -> dict[str, object]:
    """Return the part of a document that decides how it is cut."""
    names = ("doc_id", "title", "text", "source", "markup", "line")
    return {**{name: getattr(document, name) for name in names}, "meta": {"flags": document.meta.get("flags")}}


TEXT_PROCESSES = TextProcesses(requests=10_000)
"""The processes of this service process, shared by all tenants."""
