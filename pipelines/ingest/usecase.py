"""The use case of ingesting: articles in, a report out."""

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Event

from haystack import Pipeline

from components.embed.dense import load
from components.ingest import formats, split
from components.ingest.changes import content_hash
from components.ingest.crawl import Crawl
from components.ingest.document import Refusal, Revision, SourceDocument
from components.ingest.encode import payload_of
from components.ingest.files import RawArticle, chosen_articles, count_articles, raw_articles
from components.ingest.inspection import InspectedChunk, inspect
from components.ingest.parse import ArticleParser
from components.ingest.trial_encoding import on_trial
from components.ingest.write import ChunkWriter, remove_documents, within_limit
from components.language.encoder_settings import settings_from
from pipelines import definition
from pipelines.ingest import session
from pipelines.ingest.rebuild import IndexChange, rebuild, rebuild_due, rollback
from pipelines.ingest.report import IngestReport, OnProgress
from pipelines.ingest.run import IngestStages, Run
from settings import get_settings
from tenants.core.errors import CallerError, InternalFault, NotFound
from tenants.core.points import Hit
from tenants.knowledge import documents, generations, lexicon
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.trial_document import TrialDocument

log = logging.getLogger("opora.ingest")

_CUTTING = ("splitter", "enricher")
"""Steps of the ingest pipeline between parsing and writing."""

_NAMED = 5
"""Maximum number of tenants listed in a log line."""


def current_path() -> Path:
    """Return the pipeline's file: the overlay of the installation's profile if it exists, else the default."""
    settings = get_settings()
    folder = settings.pipelines_dir / "ingest"
    overlay = folder / definition.PROFILES / f"{settings.profile}.yaml"
    return overlay if overlay.is_file() else folder / "ingest.yaml"


def read_path(path: Path | str) -> Iterator[SourceDocument]:
    """Yield the documents of a file or folder, one at a time. Raises the error of the first refusal."""
    parser = ArticleParser()
    for article in raw_articles(Path(path)):
        parsed = article if isinstance(article, Refusal) else parser.parse(article)
        if isinstance(parsed, Refusal):
            raise parsed.error
        yield parsed


class Ingest:
    """Brings the tenant in context up to date with the documents it is given.

    :param yaml_path: the pipeline; the one of the installation's profile by default.
    :ivar encoder: how chunks are encoded after a rebuild.
    :ivar recipe: names the way documents become chunks.
    """

    def __init__(self, yaml_path: Path | None = None) -> None:
        content = definition.load(yaml_path or current_path())
        pipeline = Pipeline.from_dict(content, allowed_modules=definition.ALLOWED_MODULES)
        # The writer runs beside the rest: one batch is written while the next is read.
        writer = pipeline.remove_component("writer")
        if not isinstance(writer, ChunkWriter):
            raise TypeError("the ingest pipeline's writer says how chunks are encoded")
        parser = pipeline.get_component("parser")
        if not isinstance(parser, ArticleParser):
            raise TypeError("the ingest pipeline's parser says which documents are refused")
        self.encoder = writer.settings
        self.recipe = _recipe(content["components"])
        self._parser = parser
        self._stages = IngestStages(pipeline, writer, self.rewrite, self.recipe)

    def warm_up(self) -> None:
        """Load the encoder of questions, and name the tenants whose index is searched in an older way."""
        if self.encoder.dense is not None:
            load(self.encoder.dense)
        behind = [tenant_id for tenant_id, encoder in generations.encoders() if settings_from(encoder) != self.encoder]
        if behind:
            log.warning(
                "tenants whose index was built with other search settings: %d; opora index rebuild --tenant %s",
                len(behind),
                " | ".join(behind[:_NAMED]),
            )

    def run_path(self, path: Path | str, *, prune: bool = False, progress: OnProgress | None = None) -> IngestReport:
        """Ingest a file or folder. Raises `CallerError` when the path itself cannot be read.

        :param prune: afterwards the tenant holds exactly the documents of this path. Nothing is pruned when something
            was refused, because a document that could not be read is not a document that is gone.
        """
        articles = _opened(raw_articles(Path(path)))
        return Run(self._stages, articles, count_articles(Path(path)), prune=prune).finish(progress)

    def run_site(self, url: str, *, prune: bool = False, progress: OnProgress | None = None) -> IngestReport:
        """Ingest pages of a website: those that a sitemap lists, or a page and what it links to.

        Raises `CallerError` when the address itself cannot be had.

        :param prune: afterwards the tenant holds exactly these pages, unless one was refused.
        """
        articles = _opened(Crawl().articles(url))
        return Run(self._stages, articles, 0, prune=prune).finish(progress)

    def run(
        self,
        documents: Iterable[SourceDocument],
        *,
        prune: bool = False,
        progress: OnProgress | None = None,
        patience: float | None = None,
    ) -> IngestReport:
        """Ingest documents. Of two with one `doc_id` the first is taken.

        :param prune: afterwards the tenant holds exactly these documents, unless one was refused.
        :param patience: seconds to wait for another run of the tenant; None waits as long as it takes. Raises `Busy`
            with the code `ingest_busy` when they are over.
        """
        total = len(documents) if isinstance(documents, Sized) else 0
        return Run(self._stages, documents, total, prune=prune).finish(progress, patience=patience)

    def start_files(
        self, folder: Path, names: Sequence[str], *, documents_before: Mapping[str, Collection[str]] | None = None
    ) -> Run:
        """Return a run, yet to be done, over some files of a folder. A file that cannot be read is refused.

        :param names: paths in the folder.
        :param documents_before: the documents that files held before, by path; those that a file no longer holds are
            removed.
        """
        articles = chosen_articles(folder, names)
        return Run(self._stages, articles, count_articles(folder, names), documents_before=documents_before)

    def start_site(self, url: str) -> Run:
        """Return a run, not yet started, over pages of a website. An unreachable address is refused."""
        left = Event()
        return Run(self._stages, _refusing(Crawl().articles(url, left.is_set), url), 0, left=left)

    def rebuild_due(self) -> bool:
        return rebuild_due(self.encoder)

    def rebuild(self) -> IndexChange:
        return IndexChange(partial(rebuild, self.encoder, self.rewrite))

    def rollback(self) -> IndexChange:
        return IndexChange(partial(rollback, self.rewrite))

    def rewrite(self, revisions: Sequence[Revision]) -> None:
        """Write documents from their kept texts, as this pipeline would."""
        passed = list(revisions)
        for name in _CUTTING:
            passed = self._stages.reading.get_component(name).run(revisions=passed)["revisions"]
        self._stages.writer.run(revisions=passed)

    def chunks(self, article: SourceDocument) -> tuple[InspectedChunk, ...]:
        """Return the chunks that an article would have, in order. Raises `CallerError` if it would be refused."""
        hits = [Hit(chunk.chunk_id, 0.0, payload_of(chunk)) for chunk in self._revision(article).chunks]
        return tuple(inspect(hits, lexicon.current().stems))

    def trial(self, article: SourceDocument) -> TrialDocument:
        """Return an article for `trial_document.including`. Raises `CallerError` if it would be refused."""
        return on_trial(self._revision(article), self.encoder)

    def publish(self, article: SourceDocument) -> DocumentRecord:
        """Put an article, or its new version, into the knowledge base. Raises `CallerError`, `Busy`."""
        # What is wrong with it is found before anything is written.
        revision = self._revision(article)
        checked = revision.document
        with session.change(self.rewrite):
            for refusal in within_limit([revision])[1]:
                raise refusal.error
            self.rewrite([Revision(checked, content_hash(checked, self.recipe))])
            record = documents.get(checked.doc_id)
            if record is None:
                raise InternalFault("article_lost")
            return record

    def withdraw(self, doc_id: str) -> None:
        """Take a published article out of the knowledge base. Raises `NotFound` (`document_unknown`), `Busy`."""
        with session.change(self.rewrite):
            if not documents.find([doc_id]):
                raise NotFound("document_unknown")
            remove_documents([doc_id])

    def _revision(self, document: SourceDocument) -> Revision:
        """Check, cut and enrich a document as for storing. Raises `CallerError` if it would be refused."""
        checked = self._parser.parse(document)
        if isinstance(checked, Refusal):
            raise checked.error
        revisions = [Revision(checked, "")]
        for name in _CUTTING:
            passed = self._stages.reading.get_component(name).run(revisions=revisions)
            for refusal in passed.get("refusals", ()):
                raise refusal.error
            revisions = passed["revisions"]
        return revisions[0]


def _opened(stream: Iterator[RawArticle | Refusal]) -> Iterator[RawArticle | Refusal]:
    """Return the stream after reading its first article, so that an empty source changes nothing."""
    first = next(stream, None)
    return stream if first is None else chain([first], stream)


def _refusing(stream: Iterator[RawArticle | Refusal], source: str) -> Iterator[RawArticle | Refusal]:
    """Yield the stream; an error that ends it is its last item."""
    try:
        yield from stream
    except CallerError as error:
        yield Refusal(error, source)


def _recipe(components: Mapping[str, object]) -> str:
    """Names the way documents become chunks: the pipeline without its comments, the versions of readers and splitter.

    How chunks are encoded is no part of it: an index keeps to one encoder until it is rebuilt.
    """
    behaviour = {name: components[name] for name in components if name != "writer"}
    digest = sha256(json.dumps(behaviour, sort_keys=True).encode()).hexdigest()[:16]
    return f"{digest}-{formats.VERSION}-{split.VERSION}"
