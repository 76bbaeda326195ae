"""Streams that their readers may come back to at another replica.

Each process announces its streams in Redis before their first event, and writes their events in batches, some times a
second. A reader who comes to another replica gets them from there. If the process that ran the turn is gone, that
replica runs the turn again, under the same id: the shown part of an answer is taken back, and the new one follows.
"""

import asyncio
import logging
from collections import deque
from hashlib import sha256
from secrets import token_hex
from time import monotonic

from pipelines.ask.contract import AskRequest
from pipelines.ask.streams import Stream
from pipelines.ask.turn_events import LAST, NAMES, Event
from settings import Settings
from tenants.core.background_loop import Repeating
from tenants.core.errors import TryAgain, trail
from tenants.work import stream_log
from tenants.work.stream_log import LoggedEvent, LoggedStream

log = logging.getLogger("opora.ask")

_PACE_SECONDS = 0.1
_POLL_SECONDS = 0.2
_LOOK_SECONDS = 1.0
"""Interval of the signs of life of a process, and of the checks for them by readers at other replicas."""
_LOOKS = 3
"""Checks in a row without a sign of life before a turn is run again: Redis may have been away for a moment."""
_CLOSE_SECONDS = 5.0


def request_hash(request: AskRequest) -> str:
    return sha256(request.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


class StreamLog:
    """Writes the events of this process's streams in the background.

    After a failed write a stream is no longer shared, so that shared streams have no gaps.
    """

    def __init__(self, settings: Settings) -> None:
        self.name = token_hex(8)
        self._settings = settings
        self._waiting: deque[tuple[LoggedStream, LoggedEvent]] = deque()
        self._lost: set[str] = set()
        self._writing = Repeating(self._write, _PACE_SECONDS)
        self._writing.start()

    def begin(self, turn_id: str, request: AskRequest) -> LoggedStream | None:
        """Share a new stream of the caller. Returns None if Redis does not respond.

        A client that has an event of the stream can resume at another replica, even if this process dies at once.
        """
        stream = LoggedStream(turn_id, stream_log.owner(), self.name, request_hash(request))
        try:
            stream_log.begin(stream, self._settings)
        except Exception as error:
            log.warning("a stream is not shared: %s", trail(error))
            return None
        return stream

    def add(self, stream: LoggedStream, event: Event) -> None:
        """Share the next event. Called in the order of the events."""
        self._waiting.append((stream, LoggedEvent(event.number, event.name, event.data)))
        self._writing.wake()

    def close(self) -> None:
        """Write what is left, and let others take over the streams of this process."""
        self._writing.close(_CLOSE_SECONDS)
        stream_log.close(self.name, self._settings)

    def _write(self) -> float:
        events = self._next()
        turns = {stream.turn_id for stream, _ in events}
        try:
            turns &= stream_log.append(events, self.name, self._settings)
        except Exception as error:
            log.warning("%d events of streams are not shared: %s", len(events), trail(error))
        self._lost |= turns - {stream.turn_id for stream, event in events if event.name in LAST}
        return _LOOK_SECONDS

    def _next(self) -> list[tuple[LoggedStream, LoggedEvent]]:
        """Return the events since the last write, except those of lost streams."""
        events: list[tuple[LoggedStream, LoggedEvent]] = []
        while self._waiting:
            stream, event = self._waiting.popleft()
            if stream.turn_id not in self._lost:
                events.append((stream, event))
            elif event.name in LAST:
                self._lost.discard(stream.turn_id)
        return events


async def follow(stream: Stream, logged: LoggedStream, holder: str) -> bool:
    """Bring a stream of another replica here, to its end. False: the turn's process is gone, and this one, to which
    the stream belongs now, is to run the turn again.

    :param holder: this process, see `StreamLog.name`.
    :raises TryAgain: Redis does not respond, or has lost the stream.
    """
    looked_at, missed = monotonic(), 0
    while not await _bring(stream):
        if monotonic() - looked_at >= _LOOK_SECONDS:
            looked_at = monotonic()
            missed = 0 if await asyncio.to_thread(stream_log.is_alive, logged.holder) else missed + 1
            if missed >= _LOOKS and await asyncio.to_thread(stream_log.take_over, logged, holder):
                # Its process may have written more, and the end, before it went.
                return await _bring(stream)
            latest = await asyncio.to_thread(stream_log.find, logged.turn_id)
            if latest is None:
                raise TryAgain
            logged = latest
        await asyncio.sleep(_POLL_SECONDS)
    return True


def take_back(stream: Stream, seen: int) -> None:
    """Retract what readers may have been shown of a turn that is run again. Shared like all that follows.

    :param seen: the number of the last event that the reader has seen.
    """
    # The process that is gone may have sent more than it came to write; a reader has seen these numbers.
    while stream.length < seen:
        stream.publish("stage", {"node": "resumed", "iteration": 0})
    for what in ("answer", "sources"):
        stream.publish("retract", {"what": what})


async def _bring(stream: Stream) -> bool:
    """Fetch the logged events that are not here yet. Return whether the stream has ended."""
    for event in await asyncio.to_thread(stream_log.events, stream.turn_id, stream.length):
        stream.publish(NAMES[event.name], event.data)
    return stream.finished_at is not None
