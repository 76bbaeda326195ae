"""An ingest run in steps.

A run streams: it holds the batch being written, the next batch being read, and the ids of the documents seen so far.
Batches are written as they come, so an interrupted run keeps the reported changes, and the next run repairs the rest.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from itertools import takewhile
from threading import Event
from time import perf_counter
from typing import TypeAlias

from haystack import Pipeline

from components.ingest.changes import SeenDocuments
from components.ingest.comparison import compare
from components.ingest.document import Flagged, Refusal, Revision, SourceDocument
from components.ingest.files import RawArticle
from components.ingest.formats import HARMLESS
from components.ingest.reconcile import Rewrite
from components.ingest.write import NO_ROOM, ChunkWriter, Prepared, remove_documents, within_limit
from pipelines.ingest import session
from pipelines.ingest.report import IngestReport, OnProgress, Progress
from tenants.accounts.registry import Registry
from tenants.core import context
from tenants.core.batches import batches
from tenants.core.errors import Invalid
from tenants.desk.articles import ORIGIN
from tenants.knowledge import documents

Article: TypeAlias = SourceDocument | RawArticle

_BATCH_DOCUMENTS = 64
_BATCH_SIZE = 500_000
"""Characters or bytes of text per batch: some hundred chunks, one or two flushes to the disk."""

_SIZE_OF_FILE = _BATCH_SIZE // 8
"""Minimum size counted for a sandboxed file: each may take long, and a run can only be stopped between batches."""

_WRITTEN_CHUNKS = 128
"""Chunks written per step, or those of one document."""

_READ_AT_HAND = HARMLESS | {"json_lines"}
_POLL_SECONDS = 0.05
"""Interval of steps while a batch is being read, so that other work can continue."""

_HARMLESS = frozenset({"file_unsupported", "doc_id_duplicate", *NO_ROOM})
"""Refusals that hide no document: pruning may go on."""


@dataclass(frozen=True, slots=True)
class IngestStages:
    """Stages of ingest.

    :param reading: the ingest pipeline up to the writer.
    :param recipe: fingerprint of the processing from documents to chunks.
    """

    reading: Pipeline
    writer: ChunkWriter
    rewrite: Rewrite
    recipe: str


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents that are read, split and prepared for writing. `articles` counts the articles they come from."""

    articles: int
    revisions: list[Revision]
    prepared: Prepared
    refusals: list[Refusal]
    unchanged: int
    pages: int


class Run:
    """A run that does nothing until its steps are taken.

    :param total: how many articles to expect, 0 when that is unknown.
    :param prune: afterwards the tenant holds exactly the documents that were found.
    :param documents_before: the documents that files held before, by path; those that a file no longer holds are
        removed. A file of which something was refused keeps all of its documents.
    """

    def __init__(
        self,
        stages: IngestStages,
        articles: Iterable[Article | Refusal],
        total: int,
        *,
        prune: bool = False,
        documents_before: Mapping[str, Collection[str]] | None = None,
        left: Event | None = None,
    ) -> None:
        self._stages = stages
        # A stopped run waits only for the current article, because a website may be slow.
        self._left = left or Event()
        self._articles = takewhile(lambda _: not self._left.is_set(), articles)
        self._total = total
        self._prunes = prune
        self._documents_before = documents_before or {}
        self._started = perf_counter()
        self._seen = SeenDocuments()
        self._articles_read = 0
        self._pages = 0
        self._refusals: list[Refusal] = []
        self._flagged: list[Flagged] = []
        self._healed = False
        self._counts: Counter[str] = Counter()
        self._written: list[str] = []

    def steps(self, *, patience: float | None = None) -> Generator[Progress, None, None]:
        """Write a part, or wait a moment for one, per step and yield the progress; at the end the run is complete.

        A run may be left between two steps, for a while or, with `close`, for good: what is written is whole.

        :param patience: seconds to wait for another run of the same tenant; None waits as long as it takes. Raises
            `Busy` with the code `ingest_busy` when they are over.
        """
        Registry().get(context.current().tenant_id)
        with session.run(self._stages.rewrite, patience) as now:
            reader = ThreadPoolExecutor(1, "reading")
            self._healed = now.healed
            unread, acting = _batches(self._articles), copy_context()
            reading = reader.submit(acting.run, self._read, unread)
            try:
                while (batch := (yield from self._wait_for(reading))) is not None:
                    reading = reader.submit(acting.run, self._read, unread)
                    for number, revisions in enumerate(_parts(batch.revisions)):
                        if number:
                            yield self._progress
                        now.claim.check()
                        self._write(revisions, batch.prepared)
                    yield self._note(batch)
            finally:
                self._left.set()
                # A run that is left does not wait for a website that is slow, or has a lot to compare.
                reader.shutdown(wait=False, cancel_futures=True)
            yield from self._remove([*self._unfound_documents(), *self._dropped_documents()])

    def find_contradictions(self) -> Iterator[None]:
        """Compare the written documents with others, some passages per step."""
        return compare(self._written)

    def finish(self, progress: OnProgress | None = None, *, patience: float | None = None) -> IngestReport:
        reported = None
        for now in self.steps(patience=patience):
            if progress is not None and now != reported:
                progress(now)
            reported = now
        for _ in self.find_contradictions():
            pass
        return self.report

    @property
    def report(self) -> IngestReport:
        return IngestReport(
            **self._counts,
            errors=tuple(self._refusals),
            flagged=tuple(self._flagged),
            healed=self._healed,
            seconds=perf_counter() - self._started,
        )

    def holdings(self) -> Mapping[str, Collection[str]]:
        """Return the documents found in each file, and those it keeps because a part of it was refused."""
        holdings: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for doc_id, file in self._seen.doc_ids.items():
            holdings[file][doc_id] = None
        for file in self._incomplete_files():
            holdings[file] |= dict.fromkeys(self._documents_before.get(file, ()))
        return holdings

    def _read(self, batches: Iterator[list[Article | Refusal]]) -> _Batch | None:
        """Return the next batch, None after the last. It is compared with the records before the previous batch is
        written, whose documents are already in `_seen`.
        """
        batch = next(batches, None)
        if batch is None:
            return None
        articles = [article for article in batch if not isinstance(article, Refusal)]
        # Run data is exactly the sockets that the pipeline leaves open; what a client sent is inside the articles.
        steps = self._stages.reading.run(
            {
                "changes": {"articles": articles, "recipe": self._stages.recipe, "seen": self._seen},
                "parser": {"seen": self._seen},
            }
        )
        refusals = [article for article in batch if isinstance(article, Refusal)]
        for step in ("parser", "changes", "splitter"):
            refusals.extend(steps[step]["refusals"])
        revisions = steps["enricher"]["revisions"]
        prepared = self._stages.writer.prepare(revisions)
        return _Batch(
            len(batch), revisions, prepared, refusals, steps["changes"]["unchanged"], steps["parser"]["pages"]
        )

    def _wait_for(self, reading: Future[_Batch | None]) -> Generator[Progress, None, _Batch | None]:
        while not wait([reading], _POLL_SECONDS).done:
            yield self._progress
        return reading.result()

    def _write(self, revisions: list[Revision], prepared: Prepared) -> None:
        revisions, refusals = within_limit(revisions)
        self._refusals.extend(refusals)
        written = self._stages.writer.run(revisions=revisions, prepared=prepared)["written"]
        self._flagged.extend(written.flagged)
        self._written.extend(revision.document.doc_id for revision in revisions)
        for name in ("added", "updated", "chunks_written", "chunks_removed"):
            self._counts[name] += getattr(written, name)
        self._counts["chunks_kept"] += written.chunks_unchanged

    def _note(self, batch: _Batch) -> Progress:
        self._refusals.extend(batch.refusals)
        self._counts["unchanged"] += batch.unchanged
        self._articles_read += batch.articles
        self._pages += batch.pages
        return self._progress

    @property
    def _progress(self) -> Progress:
        chunks = self._counts["chunks_written"] + self._counts["chunks_kept"]
        return Progress(self._articles_read, self._total, chunks, self._pages)

    def _unfound_documents(self) -> list[str]:
        if not self._prunes:
            return []
        if self._incomplete_files():
            self._refusals.append(Refusal(Invalid("prune_skipped")))
            return []
        # What was written at the desk comes from no source that could have lost it.
        others = (record for record in documents.all() if record.source != ORIGIN)
        return [record.doc_id for record in others if record.doc_id not in self._seen.doc_ids]

    def _incomplete_files(self) -> set[str]:
        """Return the files of which something was refused that may hide a document."""
        return {refusal.source for refusal in self._refusals if refusal.error.code not in _HARMLESS}

    def _dropped_documents(self) -> list[str]:
        doubtful = self._incomplete_files()
        earlier = [
            doc_id for file, doc_ids in self._documents_before.items() if file not in doubtful for doc_id in doc_ids
        ]
        return [doc_id for doc_id in earlier if doc_id not in self._seen.doc_ids]

    def _remove(self, doc_ids: Iterable[str]) -> Iterator[Progress]:
        for some in batches(dict.fromkeys(doc_ids), _BATCH_DOCUMENTS):
            self._counts["chunks_removed"] += remove_documents(some)
            self._counts["removed"] += len(some)
            yield self._progress


def _batches(articles: Iterable[Article | Refusal]) -> Iterator[list[Article | Refusal]]:
    batch: list[Article | Refusal] = []
    size = 0
    for article in articles:
        batch.append(article)
        size += _size(article)
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parts(revisions: Iterable[Revision]) -> Iterator[list[Revision]]:
    part: list[Revision] = []
    chunks = 0
    for revision in revisions:
        if part and chunks + len(revision.chunks) > _WRITTEN_CHUNKS:
            yield part
            part, chunks = [], 0
        part.append(revision)
        chunks += len(revision.chunks)
    if part:
        yield part


def _size(article: Article | Refusal) -> int:
    if isinstance(article, Refusal):
        return 0
    if isinstance(article, SourceDocument):
        return len(article.text)
    return max(len(article.data), _SIZE_OF_FILE if article.format not in _READ_AT_HAND else 0)
