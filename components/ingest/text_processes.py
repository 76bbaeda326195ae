"""Processes text in worker processes, so that it delays neither questions nor writing to the index.

A little text is worked on right here, because handing it over would take longer. Either way the results are the same
and in the same order. A text made to keep its reader busy is given up after a while, whatever it does.

The threat: a text that takes over the worker that reads it, and through its answers this process, or the documents of
whoever is served next. So answers are JSON of known forms, a chunk's id is that of the document it was cut from, and
nothing is ever unpickled.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, StrictInt, StrictStr

from components.ingest.analysis import Analysed, Text, analysed
from components.ingest.cut import Cut, chunk_hash, chunk_id, cut_all
from components.ingest.document import Chunk, SourceDocument
from components.ingest.pack import Sizes
from components.ingest.process import Processes, program_of
from components.ingest.sandbox import MEMORY, SECONDS
from components.language.encoder_settings import EncoderSettings
from tenants.errors import CallerError, Invalid, TooLarge, TryAgain
from tenants.seats import Seats

_AT_HAND = 20_000
"""Characters that are worked on here: some ten chunks, as many milliseconds as a worker takes to begin."""

_AT_ONCE = 50_000
"""Characters of documents in one request."""

_CHUNKS_AT_ONCE = 32
_REQUESTS = 10_000

_Result = TypeVar("_Result", bound=BaseModel)


class _Form(BaseModel):
    """Part of an answer: its permitted fields, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, val_json_bytes="base64")


class _ChunkForm(_Form):
    text: StrictStr
    heading: StrictStr
    index: StrictInt
    chunk_id: StrictStr
    sentences: tuple[tuple[StrictInt, StrictInt], ...]
    meta: dict[StrictStr, JsonValue]


class _CutForm(_Form):
    title: StrictStr
    chunks: tuple[_ChunkForm, ...]

    def of(self, document: SourceDocument) -> Cut:
        """The document cut. Raises `ValueError` when it is not what was cut here."""
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


class _AnalysedForm(_Form):
    packed: tuple[bytes, bytes]
    stems: frozenset[StrictStr]
    words: frozenset[StrictStr]

    def checked(self) -> Analysed:
        """The chunk analysed. Raises `ValueError` on bytes that are no numbers (`components.ingest.encode`)."""
        dimensions, weights = self.packed
        if len(dimensions) % 4 or len(weights) != 2 * len(dimensions):
            raise ValueError("no arrays")
        return Analysed(self.packed, self.stems, self.words)


class _Answer(_Form, Generic[_Result]):
    result: tuple[_Result, ...] = ()
    error: Literal["", "file_too_demanding", "file_too_deep"] = ""


class TextProcesses(Processes):
    """Cuts and analyses text in worker processes. Thread-safe.

    :param workers: how many work at once.
    :param seconds: wall time of one request, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        program = program_of("components.ingest.text_worker")
        super().__init__(program, workers=workers, seconds=seconds, memory=memory, requests=_REQUESTS)
        self._seats = Seats(workers, workers)

    def cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> list[Cut | CallerError]:
        """Each document cut, or why it could not be: `file_too_slow`, `file_too_demanding`, `file_too_deep`."""
        if sum(len(document.text) for document in documents) <= _AT_HAND:
            return [*cut_all(documents, sizes)]
        groups = list(_groups(documents))
        cuts = self._seats.map(partial(self._cut, sizes=sizes), groups)
        return [cut for group_cuts in cuts for cut in group_cuts]

    def analysed(self, texts: Sequence[Text], settings: EncoderSettings) -> Iterator[Analysed]:
        """What each chunk is found by, in order. Some are worked on ahead of what has been taken."""
        if len(texts) <= _CHUNKS_AT_ONCE:
            return iter(analysed(texts, settings.json_form))
        groups = [texts[start : start + _CHUNKS_AT_ONCE] for start in range(0, len(texts), _CHUNKS_AT_ONCE)]
        results = self._seats.map(partial(self._analysed, settings=settings.json_form), groups)
        return (analysis for group_results in results for analysis in group_results)

    def _cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> Sequence[Cut | CallerError]:
        try:
            return self._cut_in_workers(documents, sizes)
        except TryAgain:
            return cut_all(documents, sizes)
        except CallerError as failed:
            if len(documents) == 1:
                return [failed]
            return [cut for document in documents for cut in self._cut([document], sizes)]

    def _analysed(self, texts: Sequence[Text], settings: str) -> Sequence[Analysed]:
        try:
            return self._analysed_in_workers(texts, settings)
        except (TryAgain, CallerError):
            # A chunk is short, so nothing is wrong with it. The machine has too much to do.
            return analysed(texts, settings)

    def _cut_in_workers(self, documents: Sequence[SourceDocument], sizes: Sizes) -> list[Cut]:
        request = {"documents": [_form(document) for document in documents], "sizes": asdict(sizes)}
        try:
            answer = _Answer[_CutForm].model_validate_json(self.ask("cut", json.dumps(request).encode()))
            self._check(answer.error)
            return [form.of(document) for form, document in zip(answer.result, documents, strict=True)]
        except ValueError as garbled:
            raise Invalid("file_damaged") from garbled

    def _analysed_in_workers(self, texts: Sequence[Text], encoder: str) -> list[Analysed]:
        parts = [(text.chunk_id, text.title, text.heading, text.text) for text in texts]
        request = json.dumps({"texts": parts, "encoder": encoder}).encode()
        try:
            answer = _Answer[_AnalysedForm].model_validate_json(self.ask("analyse", request))
            self._check(answer.error)
            return [form.checked() for form, _ in zip(answer.result, texts, strict=True)]
        except ValueError as garbled:
            raise Invalid("file_damaged") from garbled

    def _check(self, error: str) -> None:
        if error == "file_too_demanding":
            raise TooLarge(error, megabytes=self.memory // 10**6)
        if error:
            raise Invalid(error)


def _form(document: SourceDocument) -> dict[str, object]:
    """A document as it goes to a worker: what decides how it is cut."""
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text,
        "source": document.source,
        "meta": {"flags": document.meta.get("flags")},
        "markup": document.markup,
        "line": document.line,
    }


def _groups(documents: Sequence[SourceDocument]) -> Iterator[list[SourceDocument]]:
    group: list[SourceDocument] = []
    size = 0
    for document in documents:
        if group and size + len(document.text) > _AT_ONCE:
            yield group
            group, size = [], 0
        group.append(document)
        size += len(document.text)
    if group:
        yield group


TEXT_PROCESSES = TextProcesses()
"""Those of this process, for all tenants."""
