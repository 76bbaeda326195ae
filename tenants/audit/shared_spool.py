"""Spool of audit records in the database shared by replicas.

Threat: a replica is lost together with its disk. So a record becomes a row before the answer is sent, and any replica
moves it to the audit. The row is added without reading the chain, so requests do not wait for each other. After a
database fails to respond, it is left alone for a while, and records go to this process's own spool.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from time import monotonic, time_ns

from sqlalchemy import delete, insert, select

from settings import Settings
from tenants.audit.entry import Entry
from tenants.storage import database
from tenants.storage.audit_tables import SpooledRow
from tenants.storage.connections import patient

log = logging.getLogger("opora.audit")

_PATIENCE_SECONDS = 1.0
_REST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SpooledLine:
    """A line of the shared spool and its id. `entry` is None if this version cannot parse the line."""

    spooled_id: str
    line: bytes
    entry: Entry | None


class SharedSpool:
    """The records of all replicas on their way to the audit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._resting_until = float("-inf")

    def append(self, entry: Entry) -> bool:
        """Store a record. False when it has to be kept elsewhere: the database is this process's own, or does not
        answer."""
        if not database.is_shared(self._settings) or monotonic() < self._resting_until:
            return False
        try:
            row = insert(SpooledRow).values(spooled_id=f"{time_ns():016x}{token_hex(8)}", line=entry.line())
            with (
                database.single_statement(self._settings) as connection,
                patient(connection.connection.driver_connection, _PATIENCE_SECONDS),
            ):
                connection.execute(row)
        except Exception as error:
            log.warning("records are spooled here for %.0f s: %s", _REST_SECONDS, type(error).__name__)
            self._resting_until = monotonic() + _REST_SECONDS
            return False
        return True

    def first(self, limit: int, after: str = "") -> tuple[SpooledLine, ...]:
        """Return the oldest records with an id after this one."""
        if not database.is_shared(self._settings):
            return ()
        with database.reading(self._settings) as session:
            later = select(SpooledRow).where(SpooledRow.spooled_id > after)
            rows = session.scalars(later.order_by(SpooledRow.spooled_id).limit(limit)).all()
        return tuple(SpooledLine(row.spooled_id, row.line, _entry(row.line)) for row in rows)

    def remove(self, lines: Sequence[SpooledLine]) -> None:
        """Remove records that are in the audit."""
        ids = [one.spooled_id for one in lines]
        with database.writing(self._settings) as session:
            session.execute(delete(SpooledRow).where(SpooledRow.spooled_id.in_(ids)))


def _entry(line: bytes) -> Entry | None:
    try:
        return Entry.read(line.strip(b"\n") + b"\n")
    except (ValueError, KeyError, TypeError):
        return None
