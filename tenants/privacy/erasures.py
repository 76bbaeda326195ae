"""Journal of erasures, for restoring backups that are older than an erasure.

Threat: a person was erased, the installation is lost, and a backup restores their data. So each erasure is recorded in
a separate file, preferably on another disk (`OPORA_ERASURE_JOURNAL`), and a restore repeats it. The journal holds no
names: people are recorded by their audit digests, which the restore matches with the people in the backup.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import select

from settings import Settings, get_settings
from tenants.core.errors import CallerError, TryAgain
from tenants.core.validation import FrozenModel
from tenants.storage import database
from tenants.storage.audit_tables import ErasureRow


class Erasure(FrozenModel):
    """Subject of an erasure: a person, everywhere or at one site; a session; a session of a person. With none of these,
    the whole tenant.
    """

    tenant_id: str
    person: str = ""
    session_id: str = ""
    site: str = ""
    at: datetime

    @property
    def of_tenant(self) -> bool:
        """Whether the whole tenant was removed."""
        return not self.person and not self.session_id


def record(
    tenant_id: str, *, person: str = "", session_id: str = "", site: str = "", settings: Settings | None = None
) -> None:
    """Record an erasure before it starts. Raises `TryAgain`, `journal_unwritable`: then it must not start."""
    settings = settings or get_settings()
    path = settings.erasure_journal or settings.data_dir / "erasures.jsonl"
    erasure = Erasure(tenant_id=tenant_id, person=person, session_id=session_id, site=site, at=datetime.now(UTC))
    line = _line(erasure)
    with TryAgain("journal_unwritable").instead_of(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(file).st_size
            # A line torn by a power failure is terminated, and skipped on reading: its erasure had not started.
            is_torn = size and os.pread(file, 1, size - 1) != b"\n"
            os.write(file, ("\n" if is_torn else "").encode() + line.encode())
            os.fsync(file)
        finally:
            os.close(file)


def read(path: Path) -> list[Erasure]:
    """Return the erasures of a journal. Raises `CallerError`: `path_missing`, `journal_unreadable`."""
    if not path.is_file():
        raise CallerError("path_missing", path=str(path))
    noted = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.endswith(b"}"):
            continue
        with CallerError("journal_unreadable", path=str(path), line=number).instead_of(ValidationError):
            noted.append(Erasure.model_validate_json(line))
    return noted


def journal(settings: Settings | None = None) -> Iterator[str]:
    """Yield the journal lines known to the records, if the file is lost or spread over machines."""
    with database.across_tenants(settings) as session:
        for row in session.scalars(select(ErasureRow).order_by(ErasureRow.until)):
            yield _line(Erasure(tenant_id=row.tenant_id, person=row.person, session_id=row.session_id, at=row.until))


def _line(erasure: Erasure) -> str:
    # A release before sites were recorded accepts no such field.
    return erasure.model_dump_json(exclude=None if erasure.site else {"site"}) + "\n"
