"""The part of a stored schema that the models describe."""

from collections.abc import Mapping


def of_every_database(name: str | None, kind: str, _parents: Mapping[str, str | None]) -> bool:
    """Exclude what exists on PostgreSQL only: some indexes, which models cannot express (see migration 0014), and the
    tables of procrastinate.
    """
    prefix = {"index": "ix_pg_", "table": "procrastinate_"}.get(kind)
    return prefix is None or not (name or "").startswith(prefix)
