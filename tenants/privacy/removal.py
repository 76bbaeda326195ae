"""Removal of a tenant with all of its data: index, files, rows of every table, traces, counters.

Rows go last and in one transaction, so a removal that was cut off is made again by repeating it. Not removed: files of
a watched folder, which are the tenant's or its operator's own.
"""

from dataclasses import dataclass

from sqlalchemy import select

from settings import get_settings
from tenants import index
from tenants.access import quotas
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.audit.recorder import Recorder
from tenants.chats import files, sites
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.core.names import collection_name
from tenants.desk.tables import OneTimeLinkRow, OperatorRow, OperatorSessionRow
from tenants.insight import traces
from tenants.privacy import erasures, persons
from tenants.privacy.erasures import Erasure
from tenants.storage import database
from tenants.storage.shared_tables import InstallationRow, LeaseRow, SpooledRow
from tenants.tables import Base
from tenants.work import claims, jobs, stream_log, uploads

_SUBJECT = "removal"
_PATIENCE_SECONDS = 60.0

INSTALLATION = frozenset(row.__tablename__ for row in (OneTimeLinkRow, InstallationRow, LeaseRow, SpooledRow))
"""The tables without tenant data."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Number of removed rows by table; tables without any are left out."""

    rows: dict[str, int]


def remove(tenant_id: str) -> Removed:
    """Remove a tenant. A running service answers its tokens with `tenant_unknown` within seconds.

    :raises NotFound: `tenant_unknown`.
    :raises Busy: `ingest_busy`, if an ingest run does not end within a minute.
    :raises TryAgain: Phoenix or Redis does not respond.
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
    erasures.note(tenant_id)
    with acting_as(Tenant(tenant_id, _SUBJECT)):
        for job in jobs.open_jobs():
            jobs.cancel(job.job_id)
        with claims.ingesting(_PATIENCE_SECONDS):
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


def _remove_rows() -> dict[str, int]:
    removed = {}
    kinds: dict[str, type[Base]] = {str(mapper.local_table): mapper.class_ for mapper in Base.registry.mappers}
    with database.writing() as session:
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in INSTALLATION:
                own = [OperatorSessionRow.operator_id.in_(select(OperatorRow.operator_id))]
                is_of_operators = table.name == OperatorSessionRow.__tablename__
                if count := session.remove(kinds[table.name], *(own if is_of_operators else ())):
                    removed[table.name] = count
    return removed
