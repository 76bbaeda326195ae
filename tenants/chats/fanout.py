"""Notification of the watchers of a chat, in this process and, through Redis, in all others.

An announcement carries no content: watchers read the messages after the last one they have, so a lost, duplicate or
late announcement only costs time. Typing and presence are signals: announced and never stored.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Literal, TypeAlias

from settings import Settings
from tenants.core import context
from tenants.storage import bus

Kind: TypeAlias = Literal["changed", "typing", "presence", "roll_call"]

_CHANNEL = "chats"
_MAX_SIGNALS = 64
"""Signals that wait for one watcher. Of a slow one the oldest are dropped: they are out of date anyway."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A change of a chat, or a signal. Signals have `who`, `customer` or `operator`, and their display `name`.

    :param stream: the event stream of a present person, who may have several.
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
    """Waits for news of one chat, or of all chats of a tenant if `chat_id` is None. Bound to its event loop."""

    def __init__(self, tenant_id: str, chat_id: str | None) -> None:
        self.tenant_id = tenant_id
        self.chat_id = chat_id
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._signals: deque[Announcement] = deque(maxlen=_MAX_SIGNALS)
        self._changed: set[str] = set()

    async def wait(self, seconds: float) -> tuple[frozenset[str], tuple[Announcement, ...]]:
        """Return the ids of chats changed since the last call, and the signals; both empty after `seconds`."""
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
        """Add an announcement, from any thread. None: some may have been missed, so read again."""
        try:
            self._loop.call_soon_threadsafe(self._enqueue, announcement)
        except RuntimeError:
            # The loop is closed, and its watchers with it.
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
_VERSIONS: Counter[str] = Counter()
"""Changes of each tenant's chats; of the empty name, moments when changes of any tenant may have been missed."""
_LOCK = Lock()


def version() -> int:
    """Return a number that grows before watchers learn of a change of a chat of the tenant in context."""
    return _VERSIONS[context.current().tenant_id] + _VERSIONS[""]


@contextmanager
def watching(chat_id: str | None = None) -> Iterator[Watcher]:
    """Watch a chat, or all chats, of the tenant in context while the block runs."""
    watcher = Watcher(context.current().tenant_id, chat_id)
    key = (watcher.tenant_id, chat_id)
    with _LOCK:
        _WATCHERS.setdefault(key, set()).add(watcher)
    bus.listen()
    try:
        yield watcher
    finally:
        with _LOCK:
            _WATCHERS[key].discard(watcher)
            if not _WATCHERS[key]:
                del _WATCHERS[key]


def announce(announcement: Announcement, settings: Settings | None = None) -> None:
    """Notify all watchers in all processes. Call it after the change is committed."""
    _deliver(announcement)
    bus.publish(_CHANNEL, json.dumps(asdict(announcement)), settings)


def _deliver(announcement: Announcement) -> None:
    with _LOCK:
        _VERSIONS[announcement.tenant_id] += announcement.kind == "changed"
        watchers = [
            *_WATCHERS.get((announcement.tenant_id, announcement.chat_id), ()),
            *_WATCHERS.get((announcement.tenant_id, None), ()),
        ]
    for watcher in watchers:
        watcher.receive(announcement)


def _wake_all() -> None:
    with _LOCK:
        _VERSIONS[""] += 1
        watchers = [watcher for group in _WATCHERS.values() for watcher in group]
    for watcher in watchers:
        watcher.receive(None)


bus.on(_CHANNEL, lambda payload: _deliver(Announcement(**json.loads(payload))), _wake_all)
