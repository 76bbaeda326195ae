"""Secrets of tools, sites and webhooks are encrypted; tokens can be revoked."""

import json

import sqlalchemy as sa
from alembic import op

from tenants.storage.sealed import seal

revision = "0011"
down_revision = "0010"

_JSON = (
    ("tools", ("tenant_id", "name"), "headers"),
    ("sites", ("key",), "secrets"),
    ("webhooks", ("tenant_id", "webhook_id"), "secrets"),
)


def upgrade() -> None:
    """Encrypt stored secrets, and create the table of revocations."""
    connection = op.get_bind()
    for name, keys, column in _JSON:
        table = sa.table(name, *map(sa.column, keys), sa.column(column, sa.JSON))
        for row in connection.execute(sa.select(table)).mappings().all():
            own = (table.c[key] == row[key] for key in keys)
            sealed = seal(json.dumps(row[column]))
            connection.execute(sa.update(table).where(*own).values({column: sealed}))
    sites = sa.table("sites", sa.column("key"), sa.column("identity_secret"))
    for key, secret in connection.execute(sa.select(sites).where(sites.c.identity_secret.is_not(None))).all():
        connection.execute(sa.update(sites).where(sites.c.key == key).values(identity_secret=seal(secret)))
    op.create_table(
        "revocations",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("value", sa.String(255), primary_key=True),
        sa.Column("until", sa.DateTime, nullable=False),
    )
