"""Version 0.2.0: contradictions, votes on documents, evaluations of tenants, e-mail of chats, row-level security, and
logins unique within a tenant.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op
from sqlalchemy import inspect

from tenants.migrations.row_security import protect

revision = "0027"
down_revision = "0019"

_NAMES = {
    "right_of_claimed": "answer_precision",
    "right_of_answerable": "answer_recall",
    "claimed_of_unanswerable": "false_answer_rate",
    "false_answer": "false_answer_rate",
}
_RUNS = sa.table("evaluation_runs", sa.column("tenant_id"), sa.column("run_id"), sa.column("summary", sa.JSON))


def upgrade() -> None:
    """Upgrade the schema and rewrite stored rows. Replicas of 0.1.0 must stop: they do not name their tenant."""
    _add_contradictions()
    _add_evaluations()
    _rename_figures()
    op.add_column("chats", sa.Column("session_id", sa.String(128)))
    op.add_column("chats", sa.Column("contact", sa.Text))
    op.add_column("chats", sa.Column("mail_token", sa.String(32)))
    op.add_column("chats", sa.Column("mailed_seq", sa.Integer, nullable=False, server_default="0"))
    op.add_column("chat_messages", sa.Column("original", sa.Text))
    _rewrite_logins()
    _protect_all()


def of_tenant() -> sa.Column[str]:
    """Return the first column of the primary key of a tenant's table."""
    return sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True)


def _add_contradictions() -> None:
    """Create the tables of contradictory sentences and of readers' votes on documents."""
    op.create_table(
        "contradictions",
        of_tenant(),
        sa.Column("chunk_id", sa.String(64), primary_key=True),
        sa.Column("other_chunk_id", sa.String(64), primary_key=True),
        sa.Column("doc_id", sa.String(512), nullable=False),
        sa.Column("other_doc_id", sa.String(512), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("other_start", sa.Integer, nullable=False),
        sa.Column("other_end", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "document_votes",
        of_tenant(),
        sa.Column("doc_id", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("helpful", sa.Integer, nullable=False),
        sa.Column("unhelpful", sa.Integer, nullable=False),
    )


def _add_evaluations() -> None:
    """Create the tables of a tenant's own questions and of the runs over them."""
    op.create_table(
        "evaluation_questions",
        of_tenant(),
        sa.Column("question_id", sa.String(32), primary_key=True),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("expected", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "evaluation_results",
        of_tenant(),
        sa.Column("run_id", sa.String(32), primary_key=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
        sa.Column("nightly", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("loss", sa.JSON),
        sa.Column("seen_at", sa.DateTime),
        sa.Column("answers", sa.JSON, nullable=False),
    )
    op.create_index("ix_evaluation_results_created", "evaluation_results", ["tenant_id", "created_at"])


def _rename_figures() -> None:
    """Rename figures in stored summaries of evaluation runs; a tenant has at most a hundred."""
    bind = op.get_bind()
    for tenant_id, run_id, summary in bind.execute(sa.select(_RUNS)).all():
        chosen = (_RUNS.c.tenant_id == tenant_id) & (_RUNS.c.run_id == run_id)
        bind.execute(sa.update(_RUNS).where(chosen).values(summary=renamed(summary)))


def renamed(node: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, Mapping):
        return {_name(key): _name(value) if key == "figure" else renamed(value) for key, value in node.items()}
    return [renamed(one) for one in node] if isinstance(node, list) else node


def _name(figure: str) -> str:
    """Rename a figure, also one with a kind behind a colon."""
    name, colon, kind = figure.partition(":")
    return f"{_NAMES.get(name, name)}{colon}{kind}"


def _rewrite_logins() -> None:
    """Replace both tables and keep their rows: there are few, and SQLite cannot change a primary key."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("LOCK TABLE operators, operator_sessions")
    operators = _rows_of("operators", "login", "tenant_id", "role", "name", "password")
    sessions = _rows_of("operator_sessions", "login", "digest", "address", "browser", moments=("created_at", "seen_at"))
    op.drop_table("operator_sessions")
    op.drop_table("operators")
    stored_operators, stored_sessions = _create_operators()
    ids = {one["login"]: uuid4().hex for one in operators}
    op.bulk_insert(stored_operators, [{"operator_id": ids[one["login"]], **one} for one in operators])
    op.bulk_insert(stored_sessions, [{"operator_id": ids[one.pop("login")], **one} for one in sessions])


def _create_operators() -> tuple[sa.Table, sa.Table]:
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


def _rows_of(table: str, *texts: str, moments: tuple[str, ...] = ("created_at",)) -> list[dict[str, object]]:
    columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in texts]
    columns += [sa.column(name, sa.DateTime) for name in moments]
    rows = op.get_bind().execute(sa.select(*columns).select_from(sa.table(table)))
    return [dict(row) for row in rows.mappings()]


def _protect_all() -> None:
    """Restrict every table of tenants to the tenant of the transaction, on PostgreSQL."""
    schema = inspect(op.get_bind())
    for table in schema.get_table_names():
        if any(column["name"] == "tenant_id" for column in schema.get_columns(table)):
            protect(table)
