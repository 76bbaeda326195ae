"""Time limits for provider calls: clients limit the wait for a chunk of a reply, not for the whole call."""

import logging
from collections.abc import Callable
from contextvars import copy_context
from math import inf
from threading import Event, Thread
from time import monotonic
from typing import Generic, TypeVar

from components.models.breaker import Upstream
from components.models.calls import CallOutcome, current
from components.models.failures import ModelFailed, outcome_of
from tenants import seats

log = logging.getLogger("opora.models")

MAX_SHARE = 0.5
"""Share of the turn's remaining time that one call may take; the fallback needs the rest."""

MIN_FAIR_SECONDS = 1.0
"""A provider that was granted less than this, or than half of the given limit, is not blamed for a timeout: the turn
was nearly over, or other calls had taken the seats.
"""

_MAX_WAIT = 3_600.0
_LOCAL_SECONDS = 0.05
"""A model in this process needs less, and computes in the turn's own seat."""

T = TypeVar("T")


class Background(Generic[T]):
    """Work in a daemon thread and the caller's context, which the caller can abandon.

    The work holds a seat of `upstream` until it ends: an abandoned call still occupies the provider.
    """

    def __init__(self, name: str, upstream: Upstream, work: Callable[[], T]) -> None:
        self.ended = Event()
        self.results: list[T] = []
        self.outcome: CallOutcome = "ok"
        self.fault = ""
        self._upstream = upstream
        self._work = work
        try:
            Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True).start()
        except BaseException:
            upstream.release()
            raise

    def _run(self) -> None:
        try:
            self.results.append(self._work())
        except BaseException as error:
            # Not the exception itself: its frames hold a connection that has to close now.
            self.outcome, self.fault = outcome_of(error), type(error).__name__
        finally:
            self._upstream.release()
            self.ended.set()


def attempt(name: str, upstream: Upstream, work: Callable[[], T], seconds: float = inf) -> T:
    """Return the result of `work`, within a share of the turn's remaining time.

    :param name: for the log.
    :param seconds: the limit of this call, however much time the turn has left.
    :raises ModelFailed: the work failed or took too long, all seats were taken, or the breaker is open.
    """
    started_at = monotonic()
    budget = min(seconds, current().remaining() * MAX_SHARE, _MAX_WAIT)
    if budget <= 0:
        raise ModelFailed("timeout")
    with upstream.breaker.call():
        if not _acquire_seat(upstream, budget):
            raise ModelFailed("busy")
        call = Background(name, upstream, work)
        remaining = started_at + budget - monotonic()
        if not _wait_for_end(call.ended, max(0.0, remaining)):
            log.warning("%s failed: no answer in %.1f s", name, remaining)
            raise ModelFailed("timeout", is_blameless=remaining < min(seconds / 2, MIN_FAIR_SECONDS))
        if call.outcome != "ok":
            log.warning("%s failed: %s", name, call.fault)
            raise ModelFailed(call.outcome)
        return call.results[0]


def _acquire_seat(upstream: Upstream, patience: float) -> bool:
    if upstream.acquire(0):
        return True
    with seats.waiting():
        return upstream.acquire(patience)


def _wait_for_end(ended: Event, patience: float) -> bool:
    if ended.wait(min(patience, _LOCAL_SECONDS)):
        return True
    with seats.waiting():
        return ended.wait(patience - _LOCAL_SECONDS)
