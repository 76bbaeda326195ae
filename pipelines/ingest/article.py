"""Articles that are written at the desk, on their way into the knowledge base."""

from components.ingest.changes import content_hash
from components.ingest.document import Revision, SourceDocument
from components.ingest.encode import payload_of
from components.ingest.inspection import InspectedChunk, inspect
from components.ingest.trial import on_trial
from components.ingest.write import remove_documents
from pipelines.ingest import session
from pipelines.ingest.usecase import Ingest
from tenants.core.errors import InternalFault, NotFound
from tenants.core.points import Hit
from tenants.knowledge import documents, lexicon
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.trial import TrialDocument


class ArticleIngest:
    """Takes one article through the ingest pipeline: to look at its chunks, to try it out, to publish it.

    :param ingest: whose steps it goes through.
    """

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    def chunks(self, article: SourceDocument) -> tuple[InspectedChunk, ...]:
        """Return the chunks the article would have, in reading order. Raises `CallerError` if it would be refused."""
        revision = self._ingest.revision(article)
        hits = [Hit(chunk.chunk_id, 0.0, payload_of(chunk)) for chunk in revision.chunks]
        return tuple(inspect(hits, lexicon.current().stems))

    def trial(self, article: SourceDocument) -> TrialDocument:
        """Return the article for `tenants.knowledge.trial.including`. Raises `CallerError` when it would be refused."""
        return on_trial(self._ingest.revision(article), self._ingest.encoder)

    def publish(self, article: SourceDocument) -> DocumentRecord:
        """Put the article, or its new version, into the knowledge base. Raises `CallerError`, `Busy`."""
        # What is wrong with it is found before anything is written.
        checked = self._ingest.revision(article).document
        with session.change(self._ingest.rewrite):
            self._ingest.rewrite([Revision(checked, content_hash(checked, self._ingest.recipe))])
            record = documents.get(checked.doc_id)
            if record is None:
                raise InternalFault("article_lost")
            return record

    def withdraw(self, doc_id: str) -> None:
        """Take a published article out of the knowledge base. Raises `NotFound` (`document_unknown`), `Busy`."""
        with session.change(self._ingest.rewrite):
            if not documents.find([doc_id]):
                raise NotFound("document_unknown")
            remove_documents([doc_id])
