"""Files of a tenant's watched folder, as last ingested, with their documents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import select

from tenants.core.batches import batches
from tenants.knowledge.tables import WatchedFileRow
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A watched file.

    :param modified_ns: time of the last change of its content, in nanoseconds since 1970; negative if the knowledge
        base had no room for a part of the file.
    :param doc_ids: the documents in the file.
    """

    size: int
    modified_ns: int
    doc_ids: tuple[str, ...] = ()


def all() -> Mapping[str, WatchedFile]:
    """Return the files of the tenant in context by their paths in the watched folder."""
    query = select(WatchedFileRow)
    with database.reading() as session:
        return {row.path: record_of(WatchedFile, row) for row in session.scalars(query)}


def put(files: Mapping[str, WatchedFile], *, gone: Iterable[str] = ()) -> None:
    """Record files and delete the records of those that are gone, in one transaction."""
    paths = [*files, *gone]
    with database.writing() as session:
        for batch in batches(paths):
            session.remove(WatchedFileRow, WatchedFileRow.path.in_(batch))
        session.add_all(WatchedFileRow(path=path, **columns_of(file)) for path, file in files.items())
