"""Whether readers found a document helpful: two counters for each version, without anything about the readers."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete

from tenants.core.batches import batches
from tenants.storage import database
from tenants.storage.sessions import TenantSession
from tenants.storage.tables import DocumentVoteRow


@dataclass(frozen=True, slots=True)
class Votes:
    """Numbers of readers who found a version of a document helpful or not."""

    helpful: int = 0
    unhelpful: int = 0


def add(doc_id: str, version: int, *, helpful: bool) -> None:
    """Count one vote on a version of a document."""
    with database.writing() as session:
        row = session.locked(DocumentVoteRow, doc_id=doc_id, version=version, helpful=0, unhelpful=0)
        if helpful:
            row.helpful += 1
        else:
            row.unhelpful += 1


def count(doc_id: str, version: int) -> Votes:
    """Return the votes on a version of a document."""
    with database.reading() as session:
        row = session.find(DocumentVoteRow, doc_id, version)
        return Votes(row.helpful, row.unhelpful) if row else Votes()


def forget(session: TenantSession, doc_ids: Sequence[str]) -> None:
    """Delete the votes on documents inside the caller's transaction."""
    for batch in batches(doc_ids):
        chosen = DocumentVoteRow.doc_id.in_(batch)
        session.execute(delete(DocumentVoteRow).where(chosen))
