"""Generations of a tenant's index: the current one, the previous one, and one under construction.

A generation is all of a tenant's chunks, encoded in one way. Its row comes before its chunks and goes after them, so no
chunk is ever without a row; `tenants.index` puts this record and the chunks themselves together.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sqlalchemy import delete, func, select

from tenants.accounts import registry
from tenants.core.errors import InternalFault
from tenants.knowledge import lexicon
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.tables import DocumentRow, GenerationRow

State: TypeAlias = Literal["building", "in_force", "kept", "dropped"]
"""`kept`: the previous generation, for a rollback. `dropped`: not searched any more."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of the tenant in context.

    :param encoder: the encoder settings of its chunks, from `components.language.encoder_settings`.
    :param dimensions: of its dense vectors; 0 for none.
    :param retired_at: when it was replaced.
    """

    number: int
    state: State
    encoder: str
    dimensions: int
    created_at: datetime
    retired_at: datetime | None


def all() -> tuple[Generation, ...]:
    """Return all generations whose chunks may still be stored, by number."""
    rows = select(GenerationRow)
    with database.reading() as session:
        return tuple(_generation(row) for row in session.scalars(rows.order_by(GenerationRow.number)))


def encoding_of(number: int) -> tuple[str, int]:
    """Return the encoder settings of a generation and the dimensions of its dense vectors; empty and 0 if it does not
    exist."""
    with database.reading() as session:
        row = session.find(GenerationRow, number)
        return (row.encoder, row.dimensions) if row else ("", 0)


def in_state(state: State) -> Generation | None:
    """Return the generation in that state: at most one is in force, kept or building."""
    return next((generation for generation in all() if generation.state == state), None)


def record_first(encoder: str, dimensions: int) -> None:
    """Record the current generation before its first chunk is stored."""
    number = registry.current().placement.generation
    with database.writing() as session:
        session.merge(_row(number, "in_force", encoder, dimensions))


def begin(encoder: str, dimensions: int = 0) -> int:
    """Create a generation in state `building`; return its number. Numbers are never reused."""
    with registry.changing() as (session, tenant):
        tenant.newest_generation += 1
        session.add(_row(tenant.newest_generation, "building", encoder, dimensions))
        return tenant.newest_generation


def activate(number: int) -> None:
    """Switch, in one transaction, to a complete generation.

    The one in force before is kept if it is older; going back to the kept one drops the newer. Any other is dropped.
    """
    now = datetime.now(UTC)
    with registry.changing() as (session, tenant):
        for row in session.scalars(select(GenerationRow)):
            if row.number == number:
                row.state = "in_force"
            elif row.number == tenant.generation:
                row.state, row.retired_at = ("kept" if row.number < number else "dropped"), now
            else:
                row.state = "dropped"
        tenant.generation = number


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
    lengths = func.coalesce(func.sum(func.json_array_length(DocumentRow.chunk_ids)), 0)
    with database.reading() as session:
        return int(session.scalar(select(lengths)) or 0)


def _row(number: int, state: State, encoder: str, dimensions: int) -> GenerationRow:
    return GenerationRow(
        number=number,
        state=state,
        encoder=encoder,
        dimensions=dimensions,
        created_at=datetime.now(UTC),
        retired_at=None,
    )


def _generation(row: GenerationRow) -> Generation:
    return record_of(Generation, row)
