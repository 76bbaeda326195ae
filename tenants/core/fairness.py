"""Priority of questions: ingestion runs in small slices and waits between them while a question computes.

Both share one interpreter, so ingestion delays questions. The wait is bounded: under a constant load of questions,
ingestion still runs one slice every `PATIENCE_SECONDS`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, local
from time import perf_counter

PATIENCE_SECONDS = 0.05
"""Longest wait of a slice for a gap: about four questions, each of which a slice then delays by a third."""

IDLE_SECONDS = 30.0
"""After this long without a question, the next one is not expected soon."""

SLICE_SECONDS = 0.005
"""Time that ingestion works before it waits again, however often it yields."""

_INTERRUPTION_SECONDS = 0.001


class QuestionPriority:
    """Gives questions priority over ingestion."""

    def __init__(self) -> None:
        self._active_questions = 0
        self._last = float("-inf")
        self._changed = Condition()
        self._slice = local()

    def begin(self) -> None:
        """Count a question that computes or waits for its turn to compute. Any number may; each one calls `end`."""
        with self._changed:
            self._active_questions += 1

    def end(self) -> None:
        """Count a question no longer: it is answered, or waits for another server."""
        with self._changed:
            self._active_questions -= 1
            self._last = perf_counter()
            if not self._active_questions:
                self._changed.notify_all()

    def yield_to_questions(self) -> None:
        """Wait until no question is in progress, or for `PATIENCE_SECONDS`, once a slice.

        Call it every few milliseconds or more often.

        Never inside a database transaction or a lock that a question takes.
        """
        # Read without the lock: ingest asks thousands of times a second, and one slice too many does no harm.
        if self._active_questions and perf_counter() >= getattr(self._slice, "end", 0.0):
            with self._changed:
                self._changed.wait_for(lambda: not self._active_questions, PATIENCE_SECONDS)
            self._slice.end = perf_counter() + SLICE_SECONDS

    def has_questions(self) -> bool:
        """Whether a question is in progress."""
        return self._active_questions > 0

    def is_idle(self) -> bool:
        """Whether no question has computed for a while, so that work which blocks for a second may run."""
        return not self._active_questions and perf_counter() - self._last > IDLE_SECONDS


@contextmanager
def interruptible() -> Iterator[None]:
    """Let other threads in after a millisecond instead of five while the block runs.

    A question waits for the interpreter several times: when its request is read, and after each query. Under a bulk
    load a millisecond made the median question 14% faster; under 40 tabs of the desk it halved the 95th percentile.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_INTERRUPTION_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


_PROCESS = QuestionPriority()
begin = _PROCESS.begin
end = _PROCESS.end
yield_to_questions = _PROCESS.yield_to_questions
has_questions = _PROCESS.has_questions
is_idle = _PROCESS.is_idle
