"""Event streams, one per turn: written by the turn's thread, read by connections that come and go.

A stream outlives its connection for a while, so that a client whose network failed can resume, at another replica too
(`stream_sharing`).
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from pipelines.ask.turn_events import LAST, Event, TurnEventName
from pipelines.sse import is_event_number
from tenants.core import context
from tenants.core.errors import NotFound

RETENTION_SECONDS = 120
GRACE_SECONDS = 20.0
"""Time for which a turn continues without a reader, so that a client whose network failed can resume it."""
MAX_STREAMS = 2_000
SILENCE_SECONDS = 5.0
"""Interval at which a waiting reader checks whether the service is shutting down."""


class Stream:
    """The events of one turn.

    :param owner: a key of tenant and subject: no other caller can read the stream.
    :param grace: seconds that the turn may go on without a reader; None: it goes on to its end.
    :param on_end: called after the last event.
    :ivar on_event: called with each event, in their order.
    """

    def __init__(
        self,
        turn_id: str,
        owner: str,
        grace: float | None = GRACE_SECONDS,
        on_end: Callable[["Stream"], object] = lambda _: None,
    ) -> None:
        self.turn_id = turn_id
        self.owner = owner
        self.finished_at: float | None = None
        self._grace = grace
        self._on_end = on_end
        self.on_event: Callable[[Event], object] = lambda _: None
        self._on_abandoned: Callable[[], object] | None = None
        self._events: list[Event] = []
        self._readers: set[_Reader] = set()
        self._departures = 0
        self._lock = Lock()

    def publish(self, name: TurnEventName, data: Mapping[str, object]) -> None:
        """Append an event. Thread-safe; ignored after the last event."""
        with self._lock:
            if self.finished_at is not None:
                return
            self._events.append(Event(len(self._events) + 1, name, data))
            self.on_event(self._events[-1])
            if name in LAST:
                self.finished_at = monotonic()
            readers = list(self._readers)
        for reader in readers:
            reader.wake()
        if name in LAST:
            self._on_end(self)

    @property
    def length(self) -> int:
        return len(self._events)

    async def read(self, after: int = 0) -> AsyncGenerator[Event | None, None]:
        """Yield the events after number `after` as they arrive, up to the last; None periodically while waiting."""
        reader = _Reader(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(reader)
        try:
            while True:
                reader.news.clear()
                with self._lock:
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
                    await asyncio.wait_for(reader.news.wait(), SILENCE_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._readers.discard(reader)
                self._departures += 1
                if not self._readers and self.finished_at is None and self._grace is not None:
                    reader.loop.call_later(self._grace, self._end_grace, self._departures)

    def when_abandoned(self, callback: Callable[[], object]) -> None:
        """Set the callback for a turn that has had no reader for the grace period, or is stopped."""
        self._on_abandoned = callback

    def is_unattended(self) -> bool:
        return not self._events and self._on_abandoned is None

    def stop(self) -> None:
        """Abandon the turn now: its answer is no longer wanted."""
        if self._on_abandoned is not None:
            self._on_abandoned()

    def _end_grace(self, departure: int) -> None:
        with self._lock:
            # A reader that came back and left again starts a new grace period.
            abandoned = departure == self._departures and not self._readers and self.finished_at is None
        if abandoned:
            self.stop()


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    loop: asyncio.AbstractEventLoop
    news: asyncio.Event

    def wake(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.news.set)
        except RuntimeError:
            # Its event loop is closed, and with it the connection.
            return


class Streams:
    """The readable streams: of running turns, and those that ended recently."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._finished: deque[Stream] = deque()
        self._lock = Lock()

    def begin(self, turn_id: str, grace: float | None = GRACE_SECONDS) -> Stream:
        stream = Stream(turn_id, context.current().key("stream"), grace, self._on_end)
        with self._lock:
            self._evict()
            # If two clients resume a stream of another replica at once, keep the first copy.
            return self._streams.setdefault(turn_id, stream)

    def resume(self, event_id: str) -> tuple[Stream, int]:
        """Return the caller's stream that an event came from, and the event's number.

        Raises `NotFound` with the code `stream_unknown`: never begun, owned by another caller, or already evicted.
        """
        turn_id, _, number = event_id.rpartition(":")
        with self._lock:
            stream = self._streams.get(turn_id)
        if stream is None or stream.owner != context.current().key("stream") or not is_event_number(number):
            raise NotFound("stream_unknown")
        return stream, int(number)

    def _on_end(self, stream: Stream) -> None:
        with self._lock:
            self._finished.append(stream)

    def _evict(self) -> None:
        """Drop streams that ended long ago, and the oldest ended ones when there are too many."""
        due = monotonic() - RETENTION_SECONDS
        while self._finished:
            ended = self._finished[0].finished_at or 0.0
            if ended >= due and len(self._streams) <= MAX_STREAMS:
                return
            del self._streams[self._finished.popleft().turn_id]
