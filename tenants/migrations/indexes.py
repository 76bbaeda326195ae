"""Indexes over large tables of PostgreSQL, built while others write."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from alembic import context, op
from sqlalchemy import TextClause
from sqlalchemy.exc import DBAPIError


class Indexing:
    """Creates indexes, concurrently if the database is in use."""

    def __init__(self, *, concurrently: bool) -> None:
        self._concurrently = concurrently

    def attempt(self, statement: str) -> bool:
        """Execute a statement that may fail; return whether it succeeded."""
        connection = op.get_bind()
        try:
            with nullcontext() if self._concurrently else connection.begin_nested():
                connection.exec_driver_sql(statement)
        except DBAPIError:
            return False
        return True

    def create(self, name: str, table: str, columns: Sequence[str | TextClause], **options: Any) -> None:  # noqa: ANN401 - as Alembic takes them
        """Create an index."""
        if self._concurrently:
            # An interrupted attempt leaves an invalid index.
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(name, table, columns, postgresql_concurrently=self._concurrently, **options)


@contextmanager
def indexing() -> Iterator[Indexing]:
    """Create indexes; in a database in use, each one by itself, outside of a transaction."""
    in_use: bool = context.config.attributes["in_use"]
    with op.get_context().autocommit_block() if in_use else nullcontext():
        yield Indexing(concurrently=in_use)
