"""Conversion of rows to and from the frozen dataclasses that the rest of the code works with."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Select, select

from tenants.storage import database
from tenants.storage.tables import Base

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)
else:
    Record = TypeVar("Record")


def record_of(kind: type[Record], row: Base, **other: object) -> Record:
    """Return a dataclass with the values of a row's attributes of the same names. Lists become tuples.

    :param other: fields that the row has in another form, or not at all.
    """
    values = {name: getattr(row, name) for name in names_of(kind) if name not in other}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}, **other)


def records(kind: type[Record], query: Select[Any]) -> tuple[Record, ...]:
    """Return the rows of the tenant in context that a query selects as dataclasses."""
    with database.reading() as session:
        return tuple(record_of(kind, row) for row in session.scalars(query))


def selected(kind: type[Record], table: type[Base]) -> Select[Any]:
    """Return a query of the columns that are the fields of a dataclass, for `read`."""
    return select(*(getattr(table, name) for name in names_of(kind)))


def read(kind: type[Record], query: Select[Any]) -> tuple[Record, ...]:
    """Return what a query of `selected` returns as dataclasses, at a fifth of the cost of `records`."""
    with database.reading() as session:
        return tuple(kind(*row) for row in session.execute(query))


def columns_of(record: "DataclassInstance") -> dict[str, object]:
    """Return the fields of a dataclass as values of columns. Tuples become lists, mappings become dictionaries."""
    return {name: _stored(getattr(record, name)) for name in names_of(type(record))}


def _stored(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


@cache
def names_of(kind: "type[DataclassInstance]") -> tuple[str, ...]:
    """Return the names of the fields of a dataclass."""
    return tuple(field.name for field in fields(kind))
