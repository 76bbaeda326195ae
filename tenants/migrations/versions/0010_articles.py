"""Add articles written at the desk; add the decision, closing article and embedding of gaps."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table of articles and widen that of gaps."""
    op.create_table(
        "articles",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("article_id", sa.String(32), primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("questions", sa.JSON, nullable=False),
        sa.Column("lang", sa.String(8), nullable=False),
        sa.Column("trust", sa.String(32), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
        sa.Column("updated_by", sa.String(255), nullable=False),
        sa.Column("published_version", sa.Integer),
        sa.Column("published_at", sa.DateTime),
        sa.Column("published_by", sa.String(255)),
        sa.Column("preview", sa.JSON),
        sa.Index("ix_articles_tenant_updated", "tenant_id", "updated_at"),
    )
    op.add_column("gaps", sa.Column("decided_by", sa.String(255), nullable=False, server_default=""))
    op.add_column("gaps", sa.Column("article_id", sa.String(32)))
    op.add_column("gaps", sa.Column("vector", sa.LargeBinary))
    op.add_column("gaps", sa.Column("vector_of", sa.String(32), nullable=False, server_default=""))
