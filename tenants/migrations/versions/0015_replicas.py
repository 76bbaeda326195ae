"""Add shared state of replicas: holders of jobs and requests, uploads, records and streams."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_TENANT = sa.String(255)


def upgrade() -> None:
    """Add columns and tables. Everything has a default, because replicas of the older version keep writing."""
    for name in ("jobs", "idempotency"):
        with op.batch_alter_table(name) as table:
            table.add_column(sa.Column("holder", sa.String(32), nullable=False, server_default=""))
    op.create_table(
        "installation",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "audit_spool",
        sa.Column("spooled_id", sa.String(32), primary_key=True),
        sa.Column("line", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "upload_pieces",
        sa.Column("tenant_id", _TENANT, sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("job_id", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "streams",
        sa.Column("tenant_id", _TENANT, sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("turn_id", sa.String(128), primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(32), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("begun_at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_streams_begun", "streams", ["begun_at"])
    op.create_table(
        "stream_events",
        sa.Column("tenant_id", _TENANT, primary_key=True),
        sa.Column("turn_id", sa.String(128), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "turn_id"],
            ["streams.tenant_id", "streams.turn_id"],
            ondelete="CASCADE",
            name="fk_event_stream",
        ),
    )
