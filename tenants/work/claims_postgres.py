"""Claims in PostgreSQL, for processes on several machines: advisory locks of one connection, which end with it.

A process that ends releases all of them at once; if its machine is lost, when the server notices that (`_KEEPALIVE`).
They belong to the session, so a connection pooler must not share sessions.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, RLock, Thread
from typing import TypeVar

import psycopg

from settings import Settings
from tenants.core.errors import TryAgain
from tenants.storage import database

_LOOK_SECONDS = 1.0
_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
"""Keepalive of the server's side of the connection: a lost client is noticed within half a minute."""

# The schema, so that two installations in one database do not meet.
_KEY = "hashtextextended('opora:' || current_schema() || ':' || %s, 0)"
_HELD = """SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = KEY)""".replace("KEY", _KEY)

log = logging.getLogger("opora.claims")
T = TypeVar("T")


class PostgresClaims:
    """The claims of one process among all that use the database.

    Raises `TryAgain` when the database cannot be reached.

    :param lasting: the name of this process. It is held while connected, and taken again after a reconnect: without
        it other processes consider this one dead.
    """

    def __init__(self, settings: Settings, lasting: str) -> None:
        self._settings = settings
        self._lasting = lasting
        self._held: set[str] = set()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._named = False
        self._lock = RLock()
        self._closed = Event()
        self._connected(lambda: None)
        Thread(target=self._stay_known, name="claims", daemon=True).start()

    def take(self, name: str) -> bool:
        """Claim a name. False if it is taken. Raises `TryAgain` if the database cannot be reached."""

        def lock() -> bool:
            if name in self._held:
                return False
            acquired = self._ask(f"SELECT pg_try_advisory_lock({_KEY})", name)
            if acquired:
                self._held.add(name)
            return acquired

        return self._connected(lock)

    def holds(self, name: str) -> bool:
        """Whether the claim is still this process's: it ends with the connection."""
        with self._lock:
            if name in self._held:
                try:
                    self._ask("SELECT %s::text IS NOT NULL", name)
                except psycopg.Error:
                    self._disconnect()
            return name in self._held

    def is_held(self, name: str) -> bool:
        """Whether any process has the claim."""
        return self._connected(lambda: self._ask(_HELD, name))

    def release(self, name: str) -> None:
        """Give a claim back."""
        with self._lock:
            if name not in self._held:
                return
            self._held.discard(name)
            try:
                self._ask(f"SELECT pg_advisory_unlock({_KEY})", name)
            except psycopg.Error:
                self._disconnect()

    def close(self) -> None:
        """Give all claims back."""
        self._closed.set()
        with self._lock:
            for name in tuple(self._held):
                self.release(name)
            if self._connection is not None:
                # The server may take a moment to notice the lost connection.
                with suppress(psycopg.Error):
                    self._ask(f"SELECT pg_advisory_unlock({_KEY})", self._lasting)
            self._disconnect()

    def _stay_known(self) -> None:
        """Detect a lost connection within a second, even without other queries."""
        while not self._closed.wait(_LOOK_SECONDS):
            with self._lock, suppress(TryAgain):
                if not self._closed.is_set():
                    self._connected(lambda: self._ask("SELECT %s::text IS NOT NULL", self._lasting))

    def _connected(self, work: Callable[[], T]) -> T:
        with self._lock:
            try:
                if self._connection is not None:
                    try:
                        self._keep_name()
                        return work()
                    except psycopg.Error:
                        # An old connection may have ended unnoticed; a new one is tried once.
                        self._disconnect()
                self._connect()
                return work()
            except psycopg.Error as failed:
                self._disconnect()
                raise TryAgain("claims_unreachable") from failed

    def _connect(self) -> None:
        self._connection = database.own_connection(self._settings)
        self._connection.execute(_KEEPALIVE)
        self._named = False
        self._keep_name()

    def _keep_name(self) -> None:
        """Claim the name of this process. The server may keep it for the lost connection for a while."""
        self._named = self._named or self._ask(f"SELECT pg_try_advisory_lock({_KEY})", self._lasting)

    def _disconnect(self) -> None:
        if self._held:
            log.warning("%d claims are given up with their connection", len(self._held))
        self._held.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, query: str, name: str) -> bool:
        if self._connection is None:
            raise psycopg.OperationalError
        row = self._connection.execute(query.encode(), (name,)).fetchone()
        return row is not None and row[0] is True
