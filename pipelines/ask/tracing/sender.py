"""Sends traces, and thumbs for them, in a thread of its own, and never at anybody's cost.

A turn hands its trace over and goes on. Whether the server takes it, refuses, hangs or is slow, nobody waits: what
cannot be sent waits in a bounded queue, whose oldest traces give way to new ones, and a server in trouble is left
alone for a while. Making spans is work in the interpreter that questions need too, so it gives way to them.
"""

import json
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Thread
from urllib.parse import SplitResult, urlsplit

from pipelines.ask.tracing.otlp import encode
from pipelines.ask.tracing.scores import annotations, thumb
from pipelines.ask.tracing.spans import resource, spans
from pipelines.ask.tracing.trace import Trace
from settings import Settings
from tenants import fairness
from tenants.errors import trail
from tenants.feedback import Feedback

log = logging.getLogger("opora.traces")

PACE = 2.0
"""Seconds that traces are gathered for: a request costs as much as half a trace."""

BATCH = 32
"""Traces in one request, some 2 MB with content."""

WAITING = 256
"""Traces that wait at most; the oldest give way."""

TIMEOUT = 2.0
PAUSE = 30.0
"""Seconds that a server is left alone which did not answer."""

_PARTING = 3.0
"""Seconds that closing gives to the last traces."""

_LATER = frozenset({408, 429})


class _Unheard(Exception):
    """The server could not be reached, or has no time: the same request may succeed later."""


class Sender:
    """Takes traces and sends them. Thread-safe.

    :param settings: where to; `traces_to` must be set.
    """

    def __init__(self, settings: Settings) -> None:
        self._spans_to = settings.traces_to
        self._scores_to = f"{settings.phoenix_url.rstrip('/')}/v1/span_annotations" if settings.phoenix_url else ""
        key = settings.phoenix_api_key.get_secret_value()
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._waiting: deque[Trace | Feedback] = deque(maxlen=WAITING)
        self._batch: list[Trace | Feedback] = []
        self._lost = 0
        self._unheard = False
        self._lines: dict[str, HTTPConnection] = {}
        self._wake = Event()
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread = Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def take(self, one: Trace | Feedback) -> None:
        """Take in a trace, or what somebody thinks of a turn: a microsecond, and never an exception."""
        if len(self._waiting) == WAITING:
            self._lost += 1
        self._waiting.append(one)
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Stop, after one more attempt at what waits; a server that hangs is not waited for."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_PARTING)

    def _run(self) -> None:
        pause, stopping = PACE, False
        while not stopping:
            self._wake.wait()
            stopping = self._stop.wait(pause)
            self._wake.clear()
            pause = PACE if self._send_all() else PAUSE
            if self._batch or self._waiting:
                self._wake.set()
        for line in self._lines.values():
            line.close()

    def _send_all(self) -> bool:
        """Whether the server took all that waits. The batch that it had no time for stays in hand."""
        while self._batch or self._waiting:
            self._batch = self._batch or [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                self._send(self._batch)
            except _Unheard as error:
                if not self._unheard:
                    log.warning("traces wait, their server is not heard: %s", error)
                self._unheard = True
                return False
            except Exception as error:
                log.error("traces are lost: %s", trail(error))
                self._lost += len(self._batch)
                self._batch = []
                return False
            self._batch = []
        if self._unheard or self._lost:
            log.warning("traces are sent again, %d were lost", self._lost)
        self._unheard, self._lost = False, 0
        return True

    def _send(self, batch: Sequence[Trace | Feedback]) -> None:
        traces = [one for one in batch if isinstance(one, Trace)]
        if traces:
            self._post(self._spans_to, "application/x-protobuf", b"".join(_encoded(traces)))
        if self._scores_to:
            scores = [one for trace in traces for one in annotations(trace.answer)]
            # Of two of one person in a request, nothing says which the server would keep.
            thumbs = {(one.turn_id, one.person): thumb(one) for one in batch if isinstance(one, Feedback)}
            scores += thumbs.values()
            self._post(self._scores_to, "application/json", json.dumps({"data": scores}).encode())

    def _post(self, url: str, kind: str, body: bytes) -> None:
        """Raises `_Unheard`, or `HTTPException` when the server refuses for good."""
        parts = urlsplit(url)
        known = self._lines.pop(parts.netloc, None)
        line = known or _line(parts)
        try:
            line.request("POST", url.partition(parts.netloc)[2] or "/", body, {"Content-Type": kind, **self._headers})
            answer = line.getresponse()
            answer.read()
        except (OSError, HTTPException) as error:
            line.close()
            if known is not None and not isinstance(error, TimeoutError):
                # A server closes what was idle for long, so a known line proves nothing.
                return self._post(url, kind, body)
            raise _Unheard(type(error).__name__) from error
        self._lines[parts.netloc] = line
        if answer.status in _LATER or answer.status >= 500:
            raise _Unheard(str(answer.status))
        if answer.status >= 300:
            raise HTTPException(str(answer.status))
        return None


def _encoded(batch: Sequence[Trace]) -> Iterator[bytes]:
    for trace in batch:
        fairness.give_way()
        yield encode(trace.answer.trace_id, spans(trace), resource(trace))


def _line(parts: SplitResult) -> HTTPConnection:
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.netloc, timeout=TIMEOUT)
