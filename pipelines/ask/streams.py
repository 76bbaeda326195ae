"""Streams of events, one for each turn: written by the turn's thread, read by connections that come and go.

A stream outlives its connection for a while, so that a client whose network failed goes on where it was. It is kept in
this process: behind a load balancer a client has to come back to the same replica, or ask again.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from pipelines.ask.events import LAST, Event, EventName
from tenants import context
from tenants.errors import NotFound

KEPT_SECONDS = 120
"""How long a finished stream can be read again."""
MOST_STREAMS = 2_000
HEARTBEAT_SECONDS = 15.0

_PATIENT: frozenset[EventName] = frozenset({"stage"})
_PATIENCE_SECONDS = 0.05
"""How long such an event waits for others: a turn has twenty, and to send one costs as much as to send several."""


class Stream:
    """The events of one turn.

    :param owner: a key of tenant and subject: nobody else can read it.
    :param ended: told once the last event is there.
    """

    def __init__(self, turn_id: str, owner: str, ended: Callable[["Stream"], object] = lambda _: None) -> None:
        self.turn_id = turn_id
        self.owner = owner
        self.finished_at: float | None = None
        self._ended = ended
        self._stop: Callable[[], object] = lambda: None
        self._events: list[Event] = []
        self._readers: set[_Reader] = set()
        self._lock = Lock()

    @property
    def newest(self) -> int:
        """The number of the last event so far."""
        return len(self._events)

    def tell(self, name: EventName, data: Mapping[str, object]) -> None:
        """Append an event. From any thread; nothing follows the last one."""
        with self._lock:
            if self.finished_at is not None:
                return
            self._events.append(Event(len(self._events) + 1, name, data))
            if name in LAST:
                self.finished_at = monotonic()
            patience = _PATIENCE_SECONDS if name in _PATIENT else 0.0
            asleep = [reader for reader in self._readers if patience < reader.wakes_in]
            for reader in asleep:
                reader.wakes_in = patience
        for reader in asleep:
            reader.wake(patience)
        if name in LAST:
            self._ended(self)

    async def read(self, after: int = 0) -> AsyncGenerator[Event | None, None]:
        """The events behind number `after`, as they come, to the last one; None is a sign of life while none comes."""
        reader = _Reader(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(reader)
        try:
            while True:
                reader.news.clear()
                with self._lock:
                    reader.wakes_in = math.inf
                    new = self._events[after:]
                    over = self.finished_at is not None
                for event in new:
                    yield event
                    after = event.number
                    if event.name in LAST:
                        return
                if new:
                    continue
                if over:
                    return
                try:
                    await asyncio.wait_for(reader.news.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._readers.discard(reader)
                left = not self._readers and self.finished_at is None
            if left:
                self._stop()

    def when_left(self, stop: Callable[[], object]) -> None:
        """What to do when the last reader leaves before the end: nobody waits for this answer any more."""
        self._stop = stop


@dataclass(eq=False, slots=True)
class _Reader:
    """Who waits for events. `wakes_in` seconds by one that is still to be read, a turn need not wake it again."""

    loop: asyncio.AbstractEventLoop
    news: asyncio.Event
    wakes_in: float = math.inf

    def wake(self, patience: float) -> None:
        try:
            if patience:
                self.loop.call_soon_threadsafe(self.loop.call_later, patience, self.news.set)
            else:
                self.loop.call_soon_threadsafe(self.news.set)
        except RuntimeError:
            # Its loop has ended, and so has the connection.
            return


class Streams:
    """The streams that can be read: those at work, and those that ended lately."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._finished: deque[Stream] = deque()
        self._lock = Lock()

    def begin(self, turn_id: str) -> Stream:
        """A new stream of the caller's."""
        stream = Stream(turn_id, context.current().key("stream"), self._ended)
        with self._lock:
            self._forget()
            self._streams[turn_id] = stream
        return stream

    def resume(self, event_id: str) -> tuple[Stream, int]:
        """The caller's stream that an event came from, and the event's number.

        Raises `NotFound` with the code `stream_unknown`: never heard of, somebody else's, or forgotten by now.
        """
        turn_id, _, number = event_id.rpartition(":")
        with self._lock:
            stream = self._streams.get(turn_id)
        if stream is None or stream.owner != context.current().key("stream") or not number.isdecimal():
            raise NotFound("stream_unknown")
        return stream, int(number)

    def _ended(self, stream: Stream) -> None:
        with self._lock:
            self._finished.append(stream)

    def _forget(self) -> None:
        """Drop what ended long ago, and what ended first when there are too many."""
        due = monotonic() - KEPT_SECONDS
        while self._finished:
            ended = self._finished[0].finished_at or 0.0
            if ended >= due and len(self._streams) <= MOST_STREAMS:
                return
            del self._streams[self._finished.popleft().turn_id]
