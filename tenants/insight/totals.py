"""Counts over all tenants for administrators of the installation; no tenant data beyond that."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sqlalchemy import ColumnElement, and_, func, literal, select, true
from sqlalchemy.orm import InstrumentedAttribute

from tenants import index
from tenants.access.tables import SpendingRow
from tenants.accounts.registry import TenantRecord
from tenants.chats.tables import ChatFileRow, ChatRow, OutboxRow
from tenants.desk.tables import OperatorRow
from tenants.knowledge.tables import DocumentRow, DocumentVersionRow, GapRow
from tenants.storage import database
from tenants.storage.tables import TenantRow
from tenants.work.tables import JobRow

_TenantId: TypeAlias = InstrumentedAttribute[str] | InstrumentedAttribute[str | None]
State: TypeAlias = Literal["suspended", "empty", "works"]


@dataclass(frozen=True, slots=True)
class TenantSize:
    """Size of a tenant.

    :param storage: bytes of texts, of chat files, and of the index if it is on this machine.
    :param spent_today: cost of language models in US dollars.
    """

    operators: int = 0
    documents: int = 0
    chunks: int = 0
    chats: int = 0
    storage: int = 0
    spent_today: float = 0.0


def state(tenant: TenantRecord, size: TenantSize) -> State:
    """Return whether the tenant is suspended, in use, or has no users yet."""
    return "suspended" if tenant.suspended_at else "works" if size.operators else "empty"


def of(tenant_id: str) -> TenantSize:
    """Return the size of one tenant. Raises `TryAgain` if the records cannot be read."""
    return by_tenant(tenant_id).get(tenant_id, TenantSize())


def by_tenant(*tenant_ids: str) -> Mapping[str, TenantSize]:
    """Return the sizes of these tenants, by default of all. Raises `TryAgain` if the records cannot be read."""

    def chosen(column: _TenantId) -> ColumnElement[bool]:
        return column.in_(tenant_ids) if tenant_ids else true()

    counted: tuple[tuple[str, _TenantId, ColumnElement[int]], ...] = (
        ("operators", OperatorRow.tenant_id, func.count()),
        ("documents", DocumentRow.tenant_id, func.count()),
        ("chunks", DocumentRow.tenant_id, func.sum(func.json_array_length(DocumentRow.chunk_ids))),
        ("chats", ChatRow.tenant_id, func.count()),
        ("texts", DocumentVersionRow.tenant_id, func.sum(func.length(DocumentVersionRow.text))),
        ("files", ChatFileRow.tenant_id, func.sum(ChatFileRow.size)),
    )
    spent_today = and_(
        SpendingRow.tenant_id == TenantRow.tenant_id, SpendingRow.day == datetime.now(UTC).date().isoformat()
    )
    tenants = select(TenantRow.tenant_id, TenantRow.collection, SpendingRow.usd).outerjoin(SpendingRow, spent_today)
    tenants = tenants.where(chosen(TenantRow.tenant_id))
    with database.across_tenants() as session:
        found = {
            name: {
                tenant_id: int(count or 0)
                for tenant_id, count in session.execute(select(owner, figure).where(chosen(owner)).group_by(owner))
            }
            for name, owner, figure in counted
        }
        known = session.execute(tenants).all()
    taken = index.bytes_on_disk()
    return {
        tenant_id: TenantSize(
            **{name: found[name].get(tenant_id, 0) for name in ("operators", "documents", "chunks", "chats")},
            storage=sum(found[name].get(tenant_id, 0) for name in ("texts", "files")) + taken.get(collection, 0),
            spent_today=usd or 0.0,
        )
        for tenant_id, collection, usd in known
    }


def by_state() -> dict[str, dict[str, int]]:
    """Count tenants by state. Raises `TryAgain` if the records cannot be read."""
    states = {
        "tenants": (literal("registered"), TenantRow.tenant_id),
        "jobs": (JobRow.state, JobRow.job_id),
        "gaps": (GapRow.status, GapRow.gap_id),
        "deliveries": (OutboxRow.state, OutboxRow.delivery_id),
        "chats": (ChatRow.state, ChatRow.chat_id),
    }
    with database.across_tenants() as session:
        return {
            name: {
                str(value): count
                for value, count in session.execute(select(state, func.count(key)).group_by(state))
                if value is not None
            }
            for name, (state, key) in states.items()
        }
