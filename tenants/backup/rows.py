"""Export and import of database rows as JSON lines. Encrypted columns stay encrypted.

Tables are read from the database, not from the models, so that rows of an older version go into its tables first and
are migrated from there like any other.
"""

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from zipfile import ZipFile

from sqlalchemy import JSON, Column, Connection, LargeBinary, MetaData, Table, Text, cast, insert, select
from sqlalchemy import DateTime as SqlDateTime

from tenants.backup.envelope import Part

FOLDER = "rows/"
_BATCH = 200
_HEAVY = {"chat_files": 1, "upload_pieces": 16}
"""Tables with files in their rows, in older versions: this number of rows is in memory at a time."""
_LEFT_OUT = ("alembic_version", "leases", "procrastinate_")
"""Beginnings of the names of tables that say what processes do now. Jobs are in `jobs`, and found there."""


def parts(connection: Connection, counts: Counter[str]) -> Iterator[Part]:
    """Yield a part for each table; rows are added to `counts` while being read."""
    for table in _tables(connection):
        yield f"{FOLDER}{table.name}.jsonl", _lines(connection, table, counts)


def fill(connection: Connection, archive: ZipFile) -> None:
    """Insert the rows of a backup into existing, empty tables of the same schema version."""
    for table in _tables(connection):
        with archive.open(f"{FOLDER}{table.name}.jsonl") as part:
            _insert(connection, table, part)


def _tables(connection: Connection) -> list[Table]:
    """List the tables in an order that satisfies foreign keys."""
    metadata = MetaData()
    metadata.reflect(connection)
    for column in (column for table in metadata.tables.values() for column in table.columns):
        if isinstance(column.type, JSON):
            column.type.none_as_null = True
    return [table for table in metadata.sorted_tables if not table.name.startswith(_LEFT_OUT)]


def _lines(connection: Connection, table: Table, counts: Counter[str]) -> Iterator[bytes]:
    # JSON as text: a column's null and JSON's null are two things.
    columns = [cast(column, Text) if isinstance(column.type, JSON) else column for column in table.columns]
    yield _line([column.name for column in table.columns])
    reading = connection.execution_options(yield_per=_at_once(table)).execute(select(*columns))
    counts[table.name] = 0
    for rows in reading.partitions():
        counts[table.name] += len(rows)
        yield b"".join(_line([_plain(value) for value in row]) for row in rows)


def _insert(connection: Connection, table: Table, part: Iterable[bytes]) -> None:
    lines = (json.loads(line) for line in part)
    columns = [table.columns[name] for name in next(lines)]
    while batch := list(islice(lines, _at_once(table))):
        rows = [{c.name: _stored(c, value) for c, value in zip(columns, row, strict=True)} for row in batch]
        connection.execute(insert(table), rows)


def _at_once(table: Table) -> int:
    return _HEAVY.get(table.name, _BATCH)


def _line(values: list[object]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


def _stored(column: "Column[object]", value: object) -> object:
    if value is None:
        return None
    if isinstance(column.type, JSON):
        return JSON.NULL if value == "null" else json.loads(str(value))
    if isinstance(column.type, SqlDateTime):
        return datetime.fromisoformat(str(value))
    return b64decode(str(value)) if isinstance(column.type, LargeBinary) else value
