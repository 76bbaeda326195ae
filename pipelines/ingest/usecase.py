"""Ingesting, whoever asks for it: articles in, a report out.

A run streams: it holds one batch of documents and the ids of those it has seen. Batches are written as they come, so
a run that is cut off keeps what it reported, and the next one heals what it left half done.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sized
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
from tenants.errors import Invalid
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
        stream = raw_articles(Path(path))
        # The first article tells whether the path can be read at all, before anything is touched.
        first = next(stream, None)
        found = stream if first is None else chain([first], stream)
        return self._run(found, count_articles(Path(path)), prune=prune, progress=progress)

    def run(
        self, given: Iterable[SourceDocument], *, prune: bool = False, progress: OnProgress | None = None
    ) -> IngestReport:
        """Ingest documents. Of two with one `doc_id` the first is taken.

        :param prune: afterwards the tenant holds exactly these documents, unless one was refused.
        """
        return self._run(given, len(given) if isinstance(given, Sized) else 0, prune=prune, progress=progress)

    def _run(
        self, found: Iterable[Article | Refusal], total: int, *, prune: bool, progress: OnProgress | None
    ) -> IngestReport:
        Registry().get(context.current().tenant_id)
        with _only_run():
            return _Run(self._pipeline, self._recipe, total, progress).work(found, prune=prune)


class _Run:
    """One run: what has been seen and counted so far."""

    def __init__(self, pipeline: Pipeline, recipe: str, total: int, progress: OnProgress | None) -> None:
        self._pipeline = pipeline
        self._recipe = recipe
        self._total = total
        self._progress = progress
        self._started = perf_counter()
        self._seen = Seen()
        self._met = 0
        self._refusals: list[Refusal] = []
        self._counts: Counter[str] = Counter()

    def work(self, found: Iterable[Article | Refusal], *, prune: bool) -> IngestReport:
        healed = lexicon.begin()
        if healed:
            reconcile()
        for batch in _batches(found):
            self._write(batch)
        if prune:
            self._prune()
        if healed:
            recount()
        else:
            lexicon.finish()
        return IngestReport(
            **self._counts, errors=tuple(self._refusals), healed=healed, seconds=perf_counter() - self._started
        )

    def _write(self, batch: list[Article | Refusal]) -> None:
        self._refusals.extend(article for article in batch if isinstance(article, Refusal))
        articles = [article for article in batch if not isinstance(article, Refusal)]
        # Run data is exactly the sockets that the pipeline leaves open; what a client sent is inside the articles.
        steps = self._pipeline.run(
            {"parser": {"articles": articles}, "changes": {"recipe": self._recipe, "seen": self._seen}}
        )
        written: Written = steps["writer"]["written"]
        self._refusals.extend([*steps["parser"]["refusals"], *steps["changes"]["refusals"]])
        self._counts["unchanged"] += steps["changes"]["unchanged"]
        for name in ("added", "updated", "chunks_written", "chunks_kept", "chunks_removed"):
            self._counts[name] += getattr(written, name)
        self._met += len(batch)
        if self._progress is not None:
            chunks = self._counts["chunks_written"] + self._counts["chunks_kept"]
            self._progress(Progress(self._met, self._total, chunks))

    def _prune(self) -> None:
        if any(refusal.error.code not in _HARMLESS for refusal in self._refusals):
            self._refusals.append(Refusal(Invalid("prune_skipped")))
            return
        gone = [record.doc_id for record in documents.all() if record.doc_id not in self._seen.doc_ids]
        for start in range(0, len(gone), _BATCH_DOCUMENTS):
            self._counts["chunks_removed"] += remove_documents(gone[start : start + _BATCH_DOCUMENTS])
        self._counts["removed"] = len(gone)


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
def _only_run() -> Iterator[None]:
    """One run at a time for each tenant of this process: two would take each other's chunks for leftovers."""
    with _STARTING:
        lock = _RUNNING[get_settings().database, context.current().tenant_id]
    with lock:
        yield
