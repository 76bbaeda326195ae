"""Rows of tables that name only the values that matter to a test, and searches of the index by stems."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from zlib import crc32

from sqlalchemy import JSON, Column, TypeDecorator, inspect

from components.language.words import stems
from tenants.core.points import Conditions, Hit
from tenants.index import SPARSE, open_collection
from tenants.storage.tables import Base

Row = TypeVar("Row", bound=Base)


def row(kind: type[Row], **values: object) -> Row:
    """Return a row of a table with these values, and empty ones in every other column that needs a value."""
    columns = inspect(kind).columns.items()
    return kind(**{name: _empty(column) for name, column in columns if _is_required(column)} | values)


def _is_required(column: Column[Any]) -> bool:
    return not column.nullable and column.default is None and column.server_default is None


def _empty(column: Column[Any]) -> object:
    stored = column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type
    kind: type = dict if isinstance(stored, JSON) else stored.python_type
    return datetime.now(UTC) if kind is datetime else kind()


def of_every_database(name: str | None, kind: str, _parents: Mapping[str, str | None]) -> bool:
    """Exclude what exists on PostgreSQL only: some indexes, which models cannot express (see migration 0014), and the
    tables of procrastinate.
    """
    prefix = {"index": "ix_pg_", "table": "procrastinate_"}.get(kind)
    return prefix is None or not (name or "").startswith(prefix)


def found_by_stems(text: str, prefix: str = "", conditions: Conditions | None = None) -> list[Hit]:
    """Return the chunks that contain a stem of the text. Words share n-grams, but never stems by chance.

    :param prefix: of the vector's part: none for all fields, `h:` for title and headings.
    """
    query = {crc32(f"{prefix}{stem}".encode()): 1.0 for stem in stems(text)}
    return open_collection().search({SPARSE: query}, limit=100, conditions=conditions)[SPARSE]


def found_by_headings(text: str) -> list[Hit]:
    """Return the chunks whose title or headings contain a stem of the text."""
    return found_by_stems(text, "h:")
