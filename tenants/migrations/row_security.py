"""Row-level security of PostgreSQL: the second wall between tenants, behind `tenants.storage.tenant_session`."""

from alembic import op

_OWN = "tenant_id = (SELECT current_setting('opora.tenant', true))"
_ALL = "(SELECT current_setting('opora.across', true)) = 'on'"


def protect(table: str) -> None:
    """Restrict a table to the rows of the transaction's tenant, for its owner too. Every table of tenants needs it."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY opora_tenant ON {table} USING ({_OWN} OR {_ALL})")
