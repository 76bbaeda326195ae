"""Generations of a tenant's index: the current one, the previous one, and one under construction.

A generation is all of a tenant's chunks, encoded in one way. Its row comes before its chunks and goes after them, so no
chunk is ever without a row; `tenants.index` puts this record and the chunks themselves together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sqlalchemy import and_, delete, func, select

from settings import get_settings
from tenants.accounts import registry
from tenants.core.errors import InternalFault
from tenants.core.names import shared_name
from tenants.knowledge import lexicon
from tenants.knowledge.tables import DocumentRow, GenerationRow
from tenants.storage import database
from tenants.storage.mapping import record_of, records
from tenants.storage.tables import TenantRow

State: TypeAlias = Literal["building", "in_force", "kept", "dropped"]
"""`kept`: the previous generation, for a rollback. `dropped`: not searched any more."""


_CHUNKS = func.coalesce(func.sum(func.json_array_length(DocumentRow.chunk_ids)), 0)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of the tenant in context.

    :param encoder: the encoder settings of its chunks, from `components.language.encoder_settings`.
    :param dimensions: of its dense vectors; 0 for none.
    :param shared: the collection on the server that it shares with other tenants; empty for a dedicated one.
    :param retired_at: when it was replaced.
    """

    number: int
    state: State
    encoder: str
    dimensions: int
    shared: str
    created_at: datetime
    retired_at: datetime | None


Current: TypeAlias = tuple[Generation | None, int]
"""A tenant's current generation, None without one, and the number of chunks that its records name."""


def all() -> tuple[Generation, ...]:
    """Return all generations whose chunks may still be stored, by number."""
    return records(Generation, select(GenerationRow).order_by(GenerationRow.number))


def find(number: int) -> Generation | None:
    """Return the generation with this number, if it exists."""
    with database.reading() as session:
        row = session.find(GenerationRow, number)
        return record_of(Generation, row) if row else None


def in_state(state: State) -> Generation | None:
    """Return the generation in that state: at most one is in force, kept or building."""
    return next((generation for generation in all() if generation.state == state), None)


def encoders() -> list[tuple[str, str]]:
    """Return every tenant that has an index, and the encoder settings of its current chunks."""
    query = select(GenerationRow.tenant_id, GenerationRow.encoder).where(GenerationRow.state == "in_force")
    with database.across_tenants() as session:
        return [(tenant_id, encoder) for tenant_id, encoder in session.execute(query)]


def current_of(tenant_ids: Sequence[str]) -> Mapping[str, Current]:
    """Return the current generations of these tenants by one statement."""
    chunks = select(_CHUNKS).where(DocumentRow.tenant_id == TenantRow.tenant_id).scalar_subquery()
    in_force = and_(GenerationRow.tenant_id == TenantRow.tenant_id, GenerationRow.number == TenantRow.generation)
    query = select(TenantRow.tenant_id, GenerationRow, chunks).outerjoin(GenerationRow, in_force)
    with database.across_tenants() as session:
        return {
            tenant_id: (record_of(Generation, row) if row else None, int(count))
            for tenant_id, row, count in session.execute(query.where(TenantRow.tenant_id.in_(tenant_ids)))
        }


def record_first(encoder: str, dimensions: int) -> None:
    """Record the current generation before its first chunk is stored."""
    number, shared = registry.current().placement.generation, _fitting(dimensions)
    with database.writing() as session:
        session.merge(
            GenerationRow(number=number, state="in_force", encoder=encoder, dimensions=dimensions, shared=shared)
        )


def begin(encoder: str, dimensions: int = 0) -> int:
    """Create a generation in state `building`, in the collection that fits the tenant's size; return its number.
    Numbers are never reused."""
    shared = _fitting(dimensions)
    with registry.changing() as (session, tenant):
        tenant.newest_generation += 1
        number = tenant.newest_generation
        session.add(
            GenerationRow(number=number, state="building", encoder=encoder, dimensions=dimensions, shared=shared)
        )
        return number


def activate(number: int) -> None:
    """Switch, in one transaction, to a complete generation.

    The one in force before is kept if it is older; going back to the kept one drops the newer. Any other is dropped,
    and also the one in force before a move between a shared collection and a dedicated one.
    """
    now = datetime.now(UTC)
    with registry.changing() as (session, tenant):
        rows = {row.number: row for row in session.scalars(select(GenerationRow))}
        for row in rows.values():
            if row.number == number:
                row.state = "in_force"
            elif row.number == tenant.generation:
                is_kept = row.number < number and bool(row.shared) == bool(rows[number].shared)
                row.state, row.retired_at = ("kept" if is_kept else "dropped"), now
            else:
                row.state = "dropped"
        tenant.generation = number


def move_due() -> bool:
    """Return whether the tenant's size or `OPORA_PLACEMENT` asks for the other kind of collection."""
    current = in_state("in_force")
    return current is not None and bool(current.shared) != bool(_fitting(current.dimensions))


def forget(number: int) -> None:
    """Delete the record of a generation without chunks, and its lexicon."""
    if number == registry.current().placement.generation:
        raise InternalFault("generation_in_force")
    with database.writing() as session:
        session.execute(delete(GenerationRow).where(GenerationRow.number == number))
        lexicon.forget(session, number)


def changed_documents(after: int) -> frozenset[str]:
    """Return the documents whose records were written since a generation later than `after` began."""
    with database.reading() as session:
        return frozenset(session.scalars(select(DocumentRow.doc_id).where(DocumentRow.generation > after)))


def recorded_chunks() -> int:
    """Return the number of chunks that the document records name."""
    with database.reading() as session:
        return int(session.scalar(select(_CHUNKS)) or 0)


def _fitting(dimensions: int) -> str:
    """Return the shared collection that fits the tenant's size; empty for a dedicated one.

    A tenant with a dedicated collection returns at half the size only, so that it does not move back and forth.
    """
    settings = get_settings()
    if settings.placement == "own":
        return ""
    current = in_state("in_force")
    is_dedicated = current is not None and not current.shared
    limit = settings.shared_chunks // 2 if is_dedicated else settings.shared_chunks
    return shared_name(dimensions) if recorded_chunks() <= limit else ""
