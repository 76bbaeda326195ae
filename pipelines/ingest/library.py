"""The documents of a tenant, for those who look after them: find, read, describe, go back, remove, check.

Every change works on the tenant in context, is whole when it returns, and may come in the middle of an ingest run.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from components.ingest.document import Revision
from components.ingest.inspection import InspectedChunk, inspect
from components.ingest.reconcile import Findings, Rewrite, compare, repair
from components.ingest.records import changed, in_force, source_document
from components.ingest.write import redescribe, reembedded, remove_documents, within_limit
from pipelines.ingest import session
from pipelines.ingest.session import Session
from tenants import index
from tenants.core.errors import NotFound
from tenants.core.json import Json
from tenants.knowledge import catalogue, documents, lexicon, versions
from tenants.knowledge.catalogue import EVERYTHING, Page, Selection
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.versions import DocumentVersion

_BATCH = 64
"""Documents changed before other writers get a turn."""


class Library:
    def __init__(self, rewrite: Rewrite) -> None:
        self._rewrite = rewrite

    def page(self, selection: Selection = EVERYTHING, *, after: str = "", limit: int = 50) -> Page:
        return catalogue.page(selection, after=after, limit=limit)

    def read(self, doc_id: str) -> DocumentRecord:
        record = documents.get(doc_id)
        if record is None:
            raise NotFound("document_unknown")
        return record

    def versions(self, doc_id: str) -> tuple[DocumentVersion, ...]:
        """Return the versions that can be gone back to, newest first, without their texts. Raises `NotFound`."""
        self.read(doc_id)
        return versions.history(doc_id)

    def version(self, doc_id: str, number: int | None = None) -> DocumentVersion:
        """Return a version with its text; the current version by default.

        Raises `NotFound`: `document_unknown`, `version_unknown`.
        """
        stored = versions.get(doc_id, self.read(doc_id).version if number is None else number)
        if stored is None:
            raise NotFound("version_unknown")
        return stored

    def chunks(self, doc_id: str, *, first: int = 0, limit: int | None = None) -> tuple[InspectedChunk, ...]:
        """Return the chunks of the document, in reading order. Raises `NotFound`.

        :param first: index of the chunk to begin with.
        """
        # The one before is needed to tell what a chunk repeats of it.
        before = 1 if first else 0
        end = None if limit is None else first + limit
        hits = index.open_collection().fetch(self.read(doc_id).chunk_ids[first - before : end])
        return tuple(inspect(hits, lexicon.current().stems))[before:]

    def change(self, doc_id: str, changes: Mapping[str, Json], *, version: int | None = None) -> DocumentRecord:
        """Set properties, over what the source says and whatever it will say; None takes one back.

        Raises `NotFound` (`document_unknown`, `version_unknown`), `Invalid` (`property_unknown`, `metadata_invalid`,
        `relations_too_many`).

        :param version: an earlier version to put in force first. It becomes the newest one, and stays until the source
            itself changes.
        """
        with self._changing():
            record = self.read(doc_id)
            # What is wrong is found before anything is written.
            changed(record.overrides, changes)
            if version is not None and version != record.version:
                earlier = Revision(source_document(self.version(doc_id, version)), record.content_hash)
                for refusal in within_limit([earlier])[1]:
                    raise refusal.error
                self._rewrite([earlier])
            _change([self.read(doc_id)], changes)
            return self.read(doc_id)

    def change_all(self, selection: Selection, changes: Mapping[str, Json]) -> int:
        """Return the same for every document that fits. Returns how many there are."""
        # What is wrong with the changes is wrong for every document, so it is found before the first one.
        changed({}, changes)
        count = 0
        for batch in catalogue.batches(selection, _BATCH):
            with self._changing():
                _change(documents.find(batch).values(), changes)
            count += len(batch)
        return count

    def restore(self, doc_id: str, version: int) -> DocumentRecord:
        return self.change(doc_id, {}, version=version)

    def delete(self, doc_id: str) -> int:
        """Remove a document with its versions and ties. Returns how many chunks it had. Raises `NotFound`."""
        with self._changing():
            self.read(doc_id)
            return remove_documents([doc_id])

    def check(self, *, mend: bool = False, patience: float = session.PATIENCE_SECONDS) -> Findings:
        """Compare records, index and lexicon. Return the findings, and repair them if `mend` is set."""
        damage = index.damage()
        if damage is not None and not mend:
            return Findings(damage=damage)
        with session.change(self._rewrite, patience=patience) as now:
            # After an interruption the lexicon is recounted at the end of this anyway.
            findings = compare(count=not now.healed)
            if mend and not findings.clean:
                repair(findings, self._rewrite)
            return replace(findings, damage=damage)

    def _changing(self) -> AbstractContextManager[Session]:
        return session.change(self._rewrite)


def _change(records: Iterable[DocumentRecord], changes: Mapping[str, Json]) -> None:
    changed_records = [(record, in_force(record, changed(record.overrides, changes))) for record in records]
    new = [after for before, after in changed_records if before != after]
    prepared = reembedded(new)
    # The record first: it holds the operator's word, and what a crash leaves undone is done by it.
    documents.put(*new)
    redescribe(new, prepared)
