"""Tickets and repeated answers are encrypted; each asking of a gap keeps its own words."""

import sqlalchemy as sa
from alembic import op

from tenants.storage.sealed import seal

revision = "0006"
down_revision = "0005"

_SEALED = (("tickets", ("tenant_id", "ticket_id"), "question"), ("tickets", ("tenant_id", "ticket_id"), "draft"))
_ANSWERS = ("idempotency", ("tenant_id", "subject", "key"), "answer")


def upgrade() -> None:
    """Encrypt stored texts, and copy each gap's wording to its askings, whose own wording was not stored."""
    connection = op.get_bind()
    for name, keys, column in (*_SEALED, _ANSWERS):
        table = sa.table(name, *map(sa.column, (*keys, column)))
        rows = connection.execute(sa.select(table).where(table.c[column].is_not(None))).mappings().all()
        for row in rows:
            own = (table.c[key] == row[key] for key in keys)
            connection.execute(sa.update(table).where(*own).values({column: seal(row[column])}))
    op.add_column("gap_askings", sa.Column("question", sa.Text, nullable=False, server_default=""))
    op.execute(
        "UPDATE gap_askings SET question = (SELECT question FROM gaps "
        "WHERE gaps.tenant_id = gap_askings.tenant_id AND gaps.gap_id = gap_askings.gap_id)"
    )
