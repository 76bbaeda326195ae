"""Notices between the processes of an installation that share a database on a server (LISTEN and NOTIFY).

A notice only says what to reload, and no correctness depends on it: a lost one costs time only.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock, Thread

import psycopg
from sqlalchemy import text

from settings import Settings, get_settings
from tenants.core.errors import TryAgain
from tenants.storage import database

log = logging.getLogger("opora.notices")

_RECONNECT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Handler:
    """Callbacks for the notices of a channel: `take` for each, `missed` when some may have been lost."""

    take: Callable[[str], None]
    missed: Callable[[], None]


_HANDLERS: dict[str, _Handler] = {}
_LISTENERS: dict[str, "_Listener"] = {}
_LOCK = Lock()


def on(channel: str, take: Callable[[str], None], missed: Callable[[], None]) -> None:
    """Handle the notices of a channel, in the listener's thread. Called when a module is imported."""
    _HANDLERS[channel] = _Handler(take, missed)


def notify(channel: str, payload: str, settings: Settings | None = None) -> None:
    """Notify all processes, including this one, after the change is committed."""
    try:
        with database.writing(settings) as session:
            session.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": channel, "payload": payload})
    except TryAgain as lost:
        # The change itself is stored, and seen a second later without the notice.
        log.warning("a notice is not sent: %s", lost.code)


def listen(settings: Settings | None = None) -> None:
    """Listen from now on, if the database is shared."""
    settings = settings or get_settings()
    if not database.is_shared(settings):
        return
    with _LOCK:
        if settings.database not in _LISTENERS:
            _LISTENERS[settings.database] = _Listener(settings)
            _LISTENERS[settings.database].start()


def close_all() -> None:
    """Stop listening."""
    with _LOCK:
        listeners = list(_LISTENERS.values())
        _LISTENERS.clear()
    for listener in listeners:
        listener.close()


class _Listener:
    """A dedicated connection that waits for notices and reconnects when it breaks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = Event()
        self._thread = Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with database.own_connection(self._settings) as connection:
                    for channel in _HANDLERS:
                        connection.execute(f"LISTEN {channel}".encode())
                    for handler in tuple(_HANDLERS.values()):
                        handler.missed()
                    self._pass_on(connection)
            except psycopg.Error as error:
                log.warning("notices of other processes are missed: %s", type(error).__name__)
                self._stop.wait(_RECONNECT_SECONDS)

    def _pass_on(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        while not self._stop.is_set():
            for notice in connection.notifies(timeout=_RECONNECT_SECONDS, stop_after=1):
                try:
                    _HANDLERS[notice.channel].take(notice.payload)
                except (ValueError, TypeError):
                    log.warning("a notice of another version is passed over")
