"""Claims in PostgreSQL, for processes on several machines: rows with an end, which their process keeps moving on.

A process that ends, or loses the database for longer than `LEASE_SECONDS`, loses its claims. Claims keep no connection
open, so a connection pooler may share sessions.
"""

import logging
from contextlib import suppress
from secrets import token_hex
from threading import RLock

from sqlalchemy import ColumnElement, Double, cast, delete, extract, func, select, update
from sqlalchemy.dialects.postgresql import insert

from settings import Settings
from tenants.core.background_loop import Repeating
from tenants.core.errors import OporaError, TryAgain
from tenants.storage import database
from tenants.work.tables import LeaseRow

LEASE_SECONDS = 10.0
_RENEW_SECONDS = 2.5
# The server's clock: those of the machines may differ.
_NOW = cast(extract("epoch", func.clock_timestamp()), Double)
_END = _NOW + LEASE_SECONDS

log = logging.getLogger("opora.claims")


class LeaseClaims:
    """The claims of one process among all that use the database.

    Raises `TryAgain` when the database cannot be reached.

    :param lasting: the name of this process, which it holds until `close`: without it others consider it dead.
    """

    def __init__(self, settings: Settings, lasting: str) -> None:
        self._settings = settings
        self._holder = token_hex(8)
        self._held: set[str] = set()
        self._lock = RLock()
        self.take(lasting)
        self._renewing = Repeating(self._renew)
        self._renewing.start()

    def take(self, name: str) -> bool:
        """Claim a name. False if it is taken."""
        with self._lock:
            if name in self._held:
                return False
            new = insert(LeaseRow).values(name=name, holder=self._holder, until=_END, wanted=False)
            taken = new.on_conflict_do_update(
                index_elements=[LeaseRow.name],
                set_={"holder": self._holder, "until": _END, "wanted": False},
                where=LeaseRow.until < _NOW,
            ).returning(LeaseRow.name)
            with database.single_statement(self._settings) as connection:
                won = connection.execute(taken).first() is not None
            if won:
                self._held.add(name)
            return won

    def holds(self, name: str) -> bool:
        """Whether the claim is still this process's: it is not once it has ended, or another one has taken it."""
        return name in self._held and self._exists(name, LeaseRow.holder == self._holder)

    def is_held(self, name: str) -> bool:
        """Whether any process has the claim."""
        return self._exists(name)

    def want(self, name: str) -> None:
        """Ask the process that has the claim to give it back soon."""
        request = update(LeaseRow).where(LeaseRow.name == name).values(wanted=True)
        with database.single_statement(self._settings) as connection:
            connection.execute(request, execution_options={"synchronize_session": False})

    def is_wanted(self, name: str) -> bool:
        """Whether another process waits for the claim."""
        return self._exists(name, LeaseRow.wanted.is_(True))

    def release(self, name: str) -> None:
        """Give a claim back. If the database cannot be reached, it ends by itself."""
        with self._lock, suppress(TryAgain):
            if name in self._held:
                self._held.discard(name)
                removal = delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == self._holder)
                with database.single_statement(self._settings) as connection:
                    connection.execute(removal)

    def close(self) -> None:
        """Give all claims back."""
        for name in tuple(self._held):
            self.release(name)
        self._renewing.close(LEASE_SECONDS)

    def _renew(self) -> float:
        own = update(LeaseRow).where(LeaseRow.holder == self._holder)
        with suppress(OporaError), self._lock:
            if self._held:
                # Not the others: a claim whose release did not arrive ends.
                renewal = own.where(LeaseRow.name.in_(self._held)).values(until=_END).returning(LeaseRow.name)
                with database.single_statement(self._settings) as connection:
                    renewed = set(connection.scalars(renewal))
                if lost := self._held - renewed:
                    log.warning("%d claims were lost to other processes", len(lost))
                    self._held -= lost
        return _RENEW_SECONDS

    def _exists(self, name: str, *conditions: ColumnElement[bool]) -> bool:
        query = select(LeaseRow.name).where(LeaseRow.name == name, LeaseRow.until > _NOW, *conditions)
        with database.single_statement(self._settings) as connection:
            return connection.scalar(query) is not None
