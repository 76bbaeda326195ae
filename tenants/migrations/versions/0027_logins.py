"""Logins unique within a tenant; operators, and so their sessions, get an id."""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

from tenants.migrations.row_security import protect

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Replace both tables and keep their rows: there are few, and SQLite cannot change a primary key."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("LOCK TABLE operators, operator_sessions")
    operators = _rows("operators", "login", "tenant_id", "role", "name", "password")
    sessions = _rows("operator_sessions", "login", "digest", "address", "browser", moments=("created_at", "seen_at"))
    op.drop_table("operator_sessions")
    op.drop_table("operators")
    stored_operators, stored_sessions = _create()
    protect("operators")
    ids = {one["login"]: uuid4().hex for one in operators}
    op.bulk_insert(stored_operators, [{"operator_id": ids[one["login"]], **one} for one in operators])
    op.bulk_insert(stored_sessions, [{"operator_id": ids[one.pop("login")], **one} for one in sessions])


def _create() -> tuple[sa.Table, sa.Table]:
    operators = op.create_table(
        "operators",
        sa.Column("operator_id", sa.String(32), primary_key=True),
        sa.Column("login", sa.String(100), nullable=False),
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id")),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_operators_login", "operators", ["tenant_id", "login"], unique=True)
    without_tenant = sa.text("tenant_id IS NULL")
    op.create_index(
        "ix_operators_installation",
        "operators",
        ["login"],
        unique=True,
        sqlite_where=without_tenant,
        postgresql_where=without_tenant,
    )
    sessions = op.create_table(
        "operator_sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column(
            "operator_id",
            sa.String(32),
            sa.ForeignKey("operators.operator_id", ondelete="CASCADE", name="fk_session_operator"),
            nullable=False,
        ),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("browser", sa.String(200), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("seen_at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_operator_sessions_operator", "operator_sessions", ["operator_id"])
    return operators, sessions


def _rows(table: str, *texts: str, moments: tuple[str, ...] = ("created_at",)) -> list[dict[str, object]]:
    columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in texts]
    columns += [sa.column(name, sa.DateTime) for name in moments]
    rows = op.get_bind().execute(sa.select(*columns).select_from(sa.table(table)))
    return [dict(row) for row in rows.mappings()]
