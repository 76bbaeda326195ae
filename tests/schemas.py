"""The part of a stored schema that the models describe."""

from collections.abc import Mapping


def of_every_database(name: str | None, kind: str, _parents: Mapping[str, str | None]) -> bool:
    """Exclude the indexes for PostgreSQL only, which models cannot express; see migration 0014."""
    return not (kind == "index" and (name or "").startswith("ix_pg_"))
