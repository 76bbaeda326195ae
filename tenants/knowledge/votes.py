"""Whether readers found a document helpful: two counters for each version, without anything about the readers."""

from dataclasses import dataclass

from tenants.knowledge.tables import DocumentVoteRow
from tenants.storage import database


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
