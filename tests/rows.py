"""Rows of tables for tests, which name only the values that matter to them."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import JSON, Column, TypeDecorator, inspect

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
