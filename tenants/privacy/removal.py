"""Removal of a tenant with all of its data: index, files, rows of every table, traces, counters.

Threat: a tenant that keeps uploading blocks its own removal. So it is suspended first, and stays suspended if the
removal is interrupted after it has begun to erase. Rows are deleted last, in one transaction, so repeating an
interrupted removal completes it. Not removed: files of a watched folder, which are the tenant's or its operator's own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic, sleep

from sqlalchemy import select

from settings import get_settings
from tenants import index
from tenants.access import quotas
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit.recorder import Recorder
from tenants.chats import files, sites
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, Invalid, TryAgain
from tenants.core.names import collection_name
from tenants.desk.tables import OneTimeLinkRow, OperatorRow, OperatorSessionRow
from tenants.insight import traces
from tenants.privacy import erasures, persons
from tenants.privacy.erasures import Erasure
from tenants.storage import database
from tenants.storage.audit_tables import SpooledRow
from tenants.storage.tables import InstallationRow, TenantRow
from tenants.work import jobs, locks, stream_log, uploads
from tenants.work.tables import LeaseRow

_SUBJECT = "removal"
_PATIENCE_SECONDS = 60.0
_CANCEL_SECONDS = 1.0
"""Interval for cancelling jobs that were accepted before every process saw the suspension."""
_ROW_ATTEMPTS = 5

INSTALLATION = frozenset(row.__tablename__ for row in (OneTimeLinkRow, InstallationRow, LeaseRow, SpooledRow))
"""The tables without tenant data."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Number of removed rows by table; tables without any are left out."""

    rows: dict[str, int]


def remove(tenant_id: str) -> Removed:
    """Remove a tenant. A running service answers its tokens with `tenant_unknown` within seconds.

    :raises NotFound: `tenant_unknown`.
    :raises Busy: `ingest_busy`, if an ingest run does not end within a minute. Nothing is removed then.
    :raises TryAgain: Phoenix or Redis does not respond. The tenant stays suspended; repeat the removal.
    """
    Registry().get(tenant_id)
    return _remove(tenant_id)


def remove_confirmed(tenant_id: str, typed: str) -> Removed:
    """Remove a tenant after its id was typed for confirmation. Raises `Invalid`, `tenant_id_mistyped`, otherwise."""
    if typed != Registry().get(tenant_id).tenant_id:
        raise Invalid("tenant_id_mistyped")
    return remove(tenant_id)


def remove_again(erasure: Erasure) -> None:
    """Remove a restored tenant whose removal is newer than the backup."""
    if Registry().exists(erasure.tenant_id):
        _remove(erasure.tenant_id)


def _remove(tenant_id: str) -> Removed:
    settings = get_settings()
    with acting_as(Tenant(tenant_id, _SUBJECT)):
        with _stopped(tenant_id):
            subjects = persons.subjects()
            quotas.forget(subjects, settings)
            stream_log.erase(subjects)
            traces.erase_all()
            index.remove_all()
            uploads.remove_all()
            files.remove_all()
            recorder = Recorder(settings)
            recorder.collect()
            recorder.spool.erase_quarantined(lambda entry: entry.tenant_id == tenant_id)
            removed = _remove_rows()
        (settings.data_dir / "claims" / collection_name(tenant_id)).unlink(missing_ok=True)
        registry.expire()
        sites.expire()
    database.scrub(settings)
    return Removed(removed)


@contextmanager
def _stopped(tenant_id: str) -> Iterator[None]:
    """Suspend the tenant, wait for its ingest runs, and record the erasure.

    If that fails, resume the tenant, unless it was suspended before, or again meanwhile.
    """
    registry.refresh()
    is_suspended = registry.current().suspended_at is not None
    suspended_at = None if is_suspended else registry.suspend(tenant_id, _SUBJECT)
    with ExitStack() as held:
        try:
            _claim(held)
            erasures.record(tenant_id)
        except BaseException:
            if suspended_at is not None:
                registry.resume(tenant_id, _SUBJECT, since=suspended_at)
            raise
        yield


def _claim(held: ExitStack) -> None:
    deadline = monotonic() + _PATIENCE_SECONDS
    while True:
        for job in jobs.open_jobs():
            jobs.cancel(job.job_id)
        left = max(0.0, deadline - monotonic())
        try:
            held.enter_context(locks.ingesting(min(left, _CANCEL_SECONDS)))
        except Busy:
            if not left:
                raise
        else:
            return


def _remove_rows() -> dict[str, int]:
    """Remove the rows. Retry after a deadlock with a running transaction."""
    for attempt in range(1, _ROW_ATTEMPTS):
        try:
            return _remove_rows_once()
        except TryAgain:
            sleep(attempt)
    return _remove_rows_once()


def _remove_rows_once() -> dict[str, int]:
    removed = {}
    kinds: dict[str, type[Base]] = {str(mapper.local_table): mapper.class_ for mapper in Base.registry.mappers}
    with database.writing() as session:
        # Nothing can be added that refers to the locked row, so none of the deletions leaves a row behind.
        session.get(TenantRow, session.tenant_id, with_for_update=True)
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in INSTALLATION:
                own = [OperatorSessionRow.operator_id.in_(select(OperatorRow.operator_id))]
                is_of_operators = table.name == OperatorSessionRow.__tablename__
                if count := session.remove(kinds[table.name], *(own if is_of_operators else ())):
                    removed[table.name] = count
    return removed
