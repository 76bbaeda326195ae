"""Uploaded files in the database shared by replicas, so that any replica can run the job.

Why not object storage: files are here for minutes, until their job has ended; their number and size are bounded
(`OPORA_QUEUED_BYTES`); and another server, with its own secrets and failures, would be one more place to lose an
upload.
"""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, delete, func, select

from tenants.storage import database
from tenants.storage.shared_tables import UploadPieceRow

PIECE_BYTES = 1_000_000
ABANDONED = timedelta(days=1)
"""An upload without data for that long was abandoned. Its connection ends after seconds of silence."""


class Pieces:
    """Files of an upload of the tenant in context while they arrive."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._number = 0

    def add(self, name: str, data: bytes) -> None:
        """Store the next piece of a file."""
        self._number += 1
        row = UploadPieceRow(
            job_id=self.job_id,
            number=self._number,
            name=name,
            data=data,
            created_at=datetime.now(UTC),
        )
        with database.writing() as session:
            session.add(row)


def fetch(job_id: str, folder: Path) -> None:
    """Write the files of an upload into a folder and replace its content; do nothing for an empty upload."""
    numbers = select(UploadPieceRow.number).where(_of(job_id)).order_by(UploadPieceRow.number)
    with database.reading() as session:
        known = session.scalars(numbers).all()
    if known:
        shutil.rmtree(folder, ignore_errors=True)
    for number in known:
        piece = select(UploadPieceRow.name, UploadPieceRow.data).where(_of(job_id), UploadPieceRow.number == number)
        with database.reading() as session:
            name, data = session.execute(piece).one()
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab") as file:
            file.write(data)


def remove(job_id: str) -> None:
    """Remove the files of an upload."""
    with database.writing() as session:
        session.execute(delete(UploadPieceRow).where(_of(job_id)))


def silent(now: datetime | None = None) -> Iterator[str]:
    """Return the uploads of the tenant in context without data for `ABANDONED`."""
    query = select(UploadPieceRow.job_id).group_by(UploadPieceRow.job_id)
    last = func.max(UploadPieceRow.created_at)
    with database.reading() as session:
        yield from session.scalars(query.having(last < (now or datetime.now(UTC)) - ABANDONED)).all()


def _of(job_id: str) -> ColumnElement[bool]:
    return UploadPieceRow.job_id == job_id
