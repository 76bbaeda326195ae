"""Meaning of errors of the database, on SQLite and PostgreSQL."""

from psycopg.errors import DataCorrupted, ForeignKeyViolation, IndexCorrupted, UniqueViolation
from sqlalchemy.exc import DatabaseError

_CORRUPT = (DataCorrupted, IndexCorrupted)
_CLASHES = (UniqueViolation, ForeignKeyViolation)
_SQLITE_CLASHES = ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_FOREIGNKEY")


def is_corrupt(error: BaseException) -> bool:
    """Whether a part of the database cannot be read any more."""
    return is_corrupt_file(error) or (isinstance(error, DatabaseError) and isinstance(error.orig, _CORRUPT))


def is_corrupt_file(error: BaseException) -> bool:
    """Whether SQLite's file is damaged. A server keeps serving the intact data."""
    return sqlite_name(error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_clash(error: DatabaseError) -> bool:
    """Whether another transaction has added the same row, or removed a row that this one refers to."""
    return isinstance(error.orig, _CLASHES) or sqlite_name(error) in _SQLITE_CLASHES


def sqlite_name(error: BaseException) -> str:
    """Return SQLite's name of an error, such as `SQLITE_CORRUPT`; empty for any other."""
    cause = error.orig if isinstance(error, DatabaseError) else None
    return str(getattr(cause, "sqlite_errorname", ""))
