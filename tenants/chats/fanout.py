"""Notification of the watchers of a chat, in this process and, through Redis, in all others.

An announcement carries no content: watchers read the messages after the last one they have, so a lost, duplicate or
late announcement only costs time. Typing and presence are signals: announced and never stored.

Threat: thousands of event streams that all wake at each of a tenant's changes. So the more watchers of a tenant have
news, the longer each one rests after it; all of them wake at the same moments, so that they can share what they read.
"""

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import takewhile
from threading import Lock
from time import monotonic
from typing import Literal, TypeAlias

from settings import Settings
from tenants.core import context
from tenants.storage import bus

Kind: TypeAlias = Literal["changed", "typing", "presence", "roll_call"]

_CHANNEL = "chats"
_WAKE_SECONDS = 0.004
"""Rest of a watcher after news, for each watcher of its tenant that has had some lately: together they wake 250 times
a second.
"""
_LATELY_SECONDS = 4.0
"""As long as a thousand watchers rest. Silent ones cost nothing, so they delay no news."""

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
        self.loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._signals: deque[Announcement] = deque(maxlen=_MAX_SIGNALS)
        self._changed: set[str] = set()
        self._rests_until = 0.0

    async def wait(self, seconds: float) -> tuple[frozenset[str], tuple[Announcement, ...]]:
        """Return the ids of chats changed since the last call, and the signals; both empty after `seconds`."""
        await asyncio.sleep(self._rests_until - self.loop.time())
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
        changed, self._changed = frozenset(self._changed), set()
        signals = tuple(self._signals)
        self._signals.clear()
        if changed or signals:
            rest = _WAKE_SECONDS * _with_news(self)
            self._rests_until = (self.loop.time() // rest + 1) * rest
        return changed, signals

    def receive(self, announcement: Announcement | None) -> None:
        """Add an announcement. None: some may have been missed, so read again."""
        _note_news(self)
        if announcement is None:
            self._changed.add(self.chat_id or "")
        elif announcement.kind == "changed":
            self._changed.add(announcement.chat_id)
        else:
            self._signals.append(announcement)
        self._wake.set()


_WATCHERS: dict[tuple[str, str | None], set[Watcher]] = {}
_OPEN: Counter[str] = Counter()
"""Watchers of each tenant."""
_NEWS: defaultdict[str, dict[Watcher, float]] = defaultdict(dict)
"""Watchers of each tenant that have had news, the latest last, and when."""
_VERSIONS: Counter[str] = Counter()
"""Changes of each tenant's chats; of the empty name, moments when changes of any tenant may have been missed."""
_LOCK = Lock()


def version() -> int:
    """Return a number that grows before watchers learn of a change of a chat of the tenant in context."""
    return _VERSIONS[context.current().tenant_id] + _VERSIONS[""]


def crowd() -> int:
    """Return the number of watchers of the tenant in context in this process."""
    return _OPEN[context.current().tenant_id]


@contextmanager
def watching(chat_id: str | None = None) -> Iterator[Watcher]:
    """Watch a chat, or all chats, of the tenant in context while the block runs."""
    watcher = Watcher(context.current().tenant_id, chat_id)
    key = (watcher.tenant_id, chat_id)
    with _LOCK:
        _WATCHERS.setdefault(key, set()).add(watcher)
        _OPEN[watcher.tenant_id] += 1
    bus.listen()
    try:
        yield watcher
    finally:
        with _LOCK:
            _OPEN[watcher.tenant_id] -= 1
            _NEWS[watcher.tenant_id].pop(watcher, None)
            if not _OPEN[watcher.tenant_id]:
                del _OPEN[watcher.tenant_id], _NEWS[watcher.tenant_id]
            _WATCHERS[key].discard(watcher)
            if not _WATCHERS[key]:
                del _WATCHERS[key]


def _note_news(watcher: Watcher) -> None:
    with _LOCK:
        if watcher in _WATCHERS.get((watcher.tenant_id, watcher.chat_id), ()):
            news = _NEWS[watcher.tenant_id]
            news.pop(watcher, None)
            news[watcher] = monotonic()


def _with_news(watcher: Watcher) -> int:
    """Return how many watchers of its tenant have had news lately, this one included."""
    since = monotonic() - _LATELY_SECONDS
    with _LOCK:
        news = _NEWS[watcher.tenant_id]
        for one in list(takewhile(lambda one: news[one] < since, news)):
            del news[one]
        return max(1, len(news))


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
    _send(watchers, announcement)


def _wake_all() -> None:
    with _LOCK:
        _VERSIONS[""] += 1
        watchers = [watcher for group in _WATCHERS.values() for watcher in group]
    _send(watchers, None)


def _send(watchers: Iterable[Watcher], announcement: Announcement | None) -> None:
    """Add an announcement to what watchers have received, from any thread: one call of each event loop."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Watcher]] = defaultdict(list)
    for watcher in watchers:
        by_loop[watcher.loop].append(watcher)
    for loop, its_watchers in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and its watchers with it
            loop.call_soon_threadsafe(_receive_all, its_watchers, announcement)


def _receive_all(watchers: Iterable[Watcher], announcement: Announcement | None) -> None:
    for watcher in watchers:
        watcher.receive(announcement)


bus.on(_CHANNEL, lambda payload: _deliver(Announcement(**json.loads(payload))), _wake_all)
