"""Ingesting, whoever asks for it: articles in, a report out.

A run streams: it holds one batch of documents and the ids of those it has seen. Batches are written as they come, so
a run that is cut off keeps what it reported, and the next one heals what it left half done.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import TypeAlias

import yaml
from haystack import Pipeline

from components.ingest import split
from components.ingest.changes import Seen
from components.ingest.document import Refusal, SourceDocument
from components.ingest.files import RawArticle, count_articles, raw_articles
from components.ingest.parse import ArticleParser
from components.ingest.reconcile import reconcile, recount
from components.ingest.write import Written, remove_documents
from components.language import encoder
from pipelines.ingest.report import IngestReport, OnProgress, Progress
from settings import get_settings
from tenants import context, documents, lexicon
from tenants.errors import Busy, Invalid
from tenants.registry import Registry

Article: TypeAlias = SourceDocument | RawArticle

_YAML = Path(__file__).with_name("ingest.yaml")
_BATCH_DOCUMENTS = 64
_BATCH_SIZE = 500_000
"""Characters or bytes of text per batch: some hundred chunks, two or three flushes to the disk."""

_HARMLESS = frozenset({"file_unsupported", "doc_id_duplicate"})
"""Refusals that hide no document: pruning may go on."""

_RUNNING: dict[tuple[str, str], Lock] = defaultdict(Lock)
_STARTING = Lock()


def read_path(path: Path | str, *, refuse: Callable[[Refusal], None] | None = None) -> Iterator[SourceDocument]:
    """The documents of a file or folder, one at a time.

    :param refuse: is told of each document that cannot be taken. Without it the first one raises its error.
    """
    parser = ArticleParser()
    for found in raw_articles(Path(path)):
        parsed = found if isinstance(found, Refusal) else parser.parse(found)
        if isinstance(parsed, SourceDocument):
            yield parsed
        elif refuse is None:
            raise parsed.error
        else:
            refuse(parsed)


class Ingest:
    """Brings the tenant in context up to date with the documents it is given.

    :param yaml_path: the pipeline.
    """

    def __init__(self, yaml_path: Path = _YAML) -> None:
        text = yaml_path.read_text(encoding="utf-8")
        self._pipeline = Pipeline.loads(text, allowed_modules=["components"])
        self._recipe = _recipe(text)

    def run_path(self, path: Path | str, *, prune: bool = False, progress: OnProgress | None = None) -> IngestReport:
        """Ingest a file or folder. Raises `CallerError` when the path itself cannot be read.

        :param prune: afterwards the tenant holds exactly the documents of this path. Nothing is pruned when something
            was refused, because a document that could not be read is not a document that is gone.
        """
        return _finished(self.start_path(path, prune=prune), progress)

    def run(
        self, given: Iterable[SourceDocument], *, prune: bool = False, progress: OnProgress | None = None
    ) -> IngestReport:
        """Ingest documents. Of two with one `doc_id` the first is taken.

        :param prune: afterwards the tenant holds exactly these documents, unless one was refused.
        """
        total = len(given) if isinstance(given, Sized) else 0
        return _finished(Run(self._pipeline, self._recipe, given, total, prune=prune), progress)

    def start_path(self, path: Path | str, *, prune: bool = False) -> "Run":
        """The same as `run_path`, to be done step by step."""
        stream = raw_articles(Path(path))
        # The first article tells whether the path can be read at all, before anything is touched.
        first = next(stream, None)
        found = stream if first is None else chain([first], stream)
        return Run(self._pipeline, self._recipe, found, count_articles(Path(path)), prune=prune)


class Run:
    """One run, which does nothing until somebody takes its steps: what has been seen and counted so far."""

    def __init__(
        self, pipeline: Pipeline, recipe: str, found: Iterable[Article | Refusal], total: int, *, prune: bool
    ) -> None:
        self._pipeline = pipeline
        self._recipe = recipe
        self._found = found
        self._total = total
        self._prunes = prune
        self._started = perf_counter()
        self._seen = Seen()
        self._met = 0
        self._refusals: list[Refusal] = []
        self._healed = False
        self._counts: Counter[str] = Counter()

    def steps(self, *, wait: bool = True) -> Generator[Progress, None, None]:
        """Each step writes one batch and tells how far the run is; at the end all is in place.

        A run may be left between two steps, for a while or, with `close`, for good: what is written is whole.

        :param wait: for another run of the same tenant to end; otherwise `Busy` is raised with the code `ingest_busy`.
        """
        Registry().get(context.current().tenant_id)
        with _only_run(wait=wait):
            self._healed = lexicon.begin()
            if self._healed:
                reconcile()
            try:
                for batch in _batches(self._found):
                    yield self._write(batch)
            except GeneratorExit:
                self._finish()
                raise
            if self._prunes:
                self._prune()
            self._finish()

    @property
    def report(self) -> IngestReport:
        """What was done so far."""
        return IngestReport(
            **self._counts,
            errors=tuple(self._refusals),
            healed=self._healed,
            seconds=perf_counter() - self._started,
        )

    def _finish(self) -> None:
        if self._healed:
            recount()
        else:
            lexicon.finish()

    def _write(self, batch: list[Article | Refusal]) -> Progress:
        self._refusals.extend(article for article in batch if isinstance(article, Refusal))
        articles = [article for article in batch if not isinstance(article, Refusal)]
        # Run data is exactly the sockets that the pipeline leaves open; what a client sent is inside the articles.
        steps = self._pipeline.run(
            {
                "changes": {"articles": articles, "recipe": self._recipe, "seen": self._seen},
                "parser": {"seen": self._seen},
            }
        )
        written: Written = steps["writer"]["written"]
        self._refusals.extend([*steps["parser"]["refusals"], *steps["changes"]["refusals"]])
        self._counts["unchanged"] += steps["changes"]["unchanged"]
        for name in ("added", "updated", "chunks_written", "chunks_kept", "chunks_removed"):
            self._counts[name] += getattr(written, name)
        self._met += len(batch)
        return Progress(self._met, self._total, self._counts["chunks_written"] + self._counts["chunks_kept"])

    def _prune(self) -> None:
        if any(refusal.error.code not in _HARMLESS for refusal in self._refusals):
            self._refusals.append(Refusal(Invalid("prune_skipped")))
            return
        gone = [record.doc_id for record in documents.all() if record.doc_id not in self._seen.doc_ids]
        for start in range(0, len(gone), _BATCH_DOCUMENTS):
            self._counts["chunks_removed"] += remove_documents(gone[start : start + _BATCH_DOCUMENTS])
        self._counts["removed"] = len(gone)


def _finished(run: Run, progress: OnProgress | None) -> IngestReport:
    for now in run.steps():
        if progress is not None:
            progress(now)
    return run.report


def _batches(found: Iterable[Article | Refusal]) -> Iterator[list[Article | Refusal]]:
    batch: list[Article | Refusal] = []
    size = 0
    for article in found:
        batch.append(article)
        size += _size(article)
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(article: Article | Refusal) -> int:
    if isinstance(article, Refusal):
        return 0
    return len(article.data) if isinstance(article, RawArticle) else len(article.text)


def _recipe(text: str) -> str:
    """Names the way documents are processed: the pipeline without its comments, and the versions of our own steps."""
    behaviour = json.dumps(yaml.safe_load(text), sort_keys=True)
    return f"{sha256(behaviour.encode()).hexdigest()[:16]}-{split.VERSION}-{encoder.VERSION}"


@contextmanager
def _only_run(*, wait: bool) -> Iterator[None]:
    """One run at a time for each tenant of this process: two would take each other's chunks for leftovers."""
    with _STARTING:
        lock = _RUNNING[get_settings().database, context.current().tenant_id]
    if not lock.acquire(blocking=wait):
        raise Busy("ingest_busy")
    try:
        yield
    finally:
        lock.release()
