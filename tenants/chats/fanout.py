"""Telling whoever watches a chat that something is new, in this process and, on PostgreSQL, in all others.

What is announced is only where to look: watchers read the messages after the last one they have, so an announcement
that is lost, doubled or late costs nothing but time. Typing and presence are signals: announced and stored nowhere.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Event, Lock, Thread
from typing import Literal, TypeAlias

import psycopg
from sqlalchemy import make_url, text

from settings import Settings, get_settings
from tenants import context, database

log = logging.getLogger("opora.chats")

Kind: TypeAlias = Literal["changed", "typing", "presence", "roll_call"]

_CHANNEL = "opora_chats"
_RECONNECT_SECONDS = 1.0
_MAX_SIGNALS = 64
"""Signals that wait for one watcher. Of a slow one the oldest are dropped: they are out of date anyway."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Something about a chat. The rest belongs to signals: `who` is `customer` or `operator`, `name` how to call them.

    :param stream: through which somebody is present; a person may have several.
    """

    tenant_id: str
    chat_id: str
    kind: Kind = "changed"
    who: str = ""
    name: str = ""
    active: bool = True
    subject: str = ""
    stream: str = ""


class Watcher:
    """One watcher of a chat, or, without `chat_id`, of all chats of a tenant. Belongs to the loop it was made in."""

    def __init__(self, tenant_id: str, chat_id: str | None) -> None:
        self.tenant_id = tenant_id
        self.chat_id = chat_id
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._signals: deque[Announcement] = deque(maxlen=_MAX_SIGNALS)
        self._changed: set[str] = set()

    async def wait(self, seconds: float) -> tuple[frozenset[str], tuple[Announcement, ...]]:
        """The ids of chats that have changed since the last call, and the signals; nothing after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
        changed, self._changed = frozenset(self._changed), set()
        signals = tuple(self._signals)
        self._signals.clear()
        return changed, signals

    def receive(self, announcement: Announcement | None) -> None:
        """Called from any thread. None: announcements may have been missed, so look again."""
        try:
            self._loop.call_soon_threadsafe(self._enqueue, announcement)
        except RuntimeError:
            # The loop is closed, and whoever watched from it is gone.
            return

    def _enqueue(self, announcement: Announcement | None) -> None:
        if announcement is None:
            self._changed.add(self.chat_id or "")
        elif announcement.kind == "changed":
            self._changed.add(announcement.chat_id)
        else:
            self._signals.append(announcement)
        self._wake.set()


_WATCHERS: dict[tuple[str, str | None], set[Watcher]] = {}
_LOCK = Lock()
_LISTENERS: dict[str, "_Listener"] = {}


@contextmanager
def watching(chat_id: str | None = None) -> Iterator[Watcher]:
    """Watch a chat, or all chats, of the tenant in context for the length of the block."""
    watcher = Watcher(context.current().tenant_id, chat_id)
    key = (watcher.tenant_id, chat_id)
    with _LOCK:
        _WATCHERS.setdefault(key, set()).add(watcher)
    _listen(get_settings())
    try:
        yield watcher
    finally:
        with _LOCK:
            _WATCHERS[key].discard(watcher)
            if not _WATCHERS[key]:
                del _WATCHERS[key]


def announce(announcement: Announcement, settings: Settings | None = None) -> None:
    """Tell all watchers, wherever they are. Call it after the change that it is about is committed."""
    if not database.is_shared(settings):
        _deliver(announcement)
        return
    bound = database.engine(settings)
    # PostgreSQL notifies this process, too, so that nobody is notified twice.
    with bound.begin() as connection:
        payload = json.dumps(asdict(announcement))
        connection.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": _CHANNEL, "payload": payload})


def close_all() -> None:
    """Stop listening."""
    with _LOCK:
        listeners = list(_LISTENERS.values())
        _LISTENERS.clear()
    for listener in listeners:
        listener.close()


def _deliver(announcement: Announcement) -> None:
    with _LOCK:
        watchers = [
            *_WATCHERS.get((announcement.tenant_id, announcement.chat_id), ()),
            *_WATCHERS.get((announcement.tenant_id, None), ()),
        ]
    for watcher in watchers:
        watcher.receive(announcement)


def _wake_all() -> None:
    with _LOCK:
        watchers = [watcher for group in _WATCHERS.values() for watcher in group]
    for watcher in watchers:
        watcher.receive(None)


def _listen(settings: Settings) -> None:
    url = settings.database
    if make_url(url).get_backend_name() != "postgresql":
        return
    with _LOCK:
        if url not in _LISTENERS:
            _LISTENERS[url] = _Listener(url)
            _LISTENERS[url].start()


class _Listener:
    """A connection of its own that waits for notifications, made anew when it breaks."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._dsn = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        self._stop = Event()
        self._thread = Thread(target=self._run, name="chat-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._dsn, autocommit=True) as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    _wake_all()
                    self._pass_on(connection)
            except psycopg.Error as error:
                log.warning("chats are not announced by the database: %s", type(error).__name__)
                self._stop.wait(_RECONNECT_SECONDS)

    def _pass_on(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        while not self._stop.is_set():
            for notification in connection.notifies(timeout=_RECONNECT_SECONDS, stop_after=1):
                try:
                    _deliver(Announcement(**json.loads(notification.payload)))
                except (ValueError, TypeError):
                    log.warning("an announcement of another version is passed over")
