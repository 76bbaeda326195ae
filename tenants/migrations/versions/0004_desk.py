"""The operator desk: accounts, sessions, one-time links, canned replies."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables of the desk."""
    op.create_table(
        "operators",
        sa.Column("login", sa.String(100), primary_key=True),
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id")),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Index("ix_operators_tenant", "tenant_id"),
    )
    op.create_table(
        "operator_sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column(
            "login",
            sa.String(100),
            sa.ForeignKey("operators.login", ondelete="CASCADE", name="fk_session_operator"),
            nullable=False,
        ),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("browser", sa.String(200), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("seen_at", sa.DateTime, nullable=False),
        sa.Index("ix_operator_sessions_login", "login"),
    )
    op.create_table(
        "one_time_links",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "canned_replies",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("reply_id", sa.String(32), primary_key=True),
        sa.Column("title", sa.String(100), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
