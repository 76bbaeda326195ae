"""Time limits for provider calls: clients limit the wait for a chunk of a reply, not for the whole call."""

import logging
from collections.abc import Callable
from contextvars import copy_context
from math import inf
from threading import Event, Thread
from time import monotonic
from typing import TypeVar

from components.models.breaker import Upstream
from components.models.calls import NOT_ATTEMPTED, current
from components.models.failures import ModelFailed, failure_of
from tenants.core import context
from tenants.work import seats

log = logging.getLogger("opora.models")

MAX_SHARE = 0.5
"""Share of the turn's remaining time that one call may take; the fallback needs the rest."""

MIN_FAIR_SECONDS = 1.0
"""A provider that was granted less than this, or than half of the given limit, is not blamed for a timeout: the turn
was nearly over, or other calls had taken the seats.
"""

_MAX_WAIT = 3_600.0
_POLL_SECONDS = 0.25
_LOCAL_SECONDS = 0.05
"""Calls of a model in this process take less time and use the turn's own seat."""

T = TypeVar("T")


def attempt(
    name: str,
    upstream: Upstream,
    work: Callable[[], T],
    seconds: float = inf,
    *,
    loading: float = 0.0,
) -> T:
    """Return the result of `work`, within a share of the turn's remaining time.

    :param name: for the log.
    :param seconds: the limit of this call, however much time the turn has left.
    :param loading: seconds that the provider may take to load its model. Timeouts meanwhile do not count as failures.
    :raises ModelFailed: the work failed or took too long, all seats were taken, or a breaker is open.
    """
    budget = min(seconds, current().remaining() * MAX_SHARE, _MAX_WAIT)
    ends_at = monotonic() + budget
    if budget <= 0:
        raise ModelFailed("timeout", is_blameless=True)
    granted, is_loading = 0.0, upstream.loading_seconds(loading) > 0

    def remaining() -> float:
        return ends_at - monotonic()

    def started() -> T:
        nonlocal granted
        granted = remaining()
        return work()

    with upstream.call(context.tenant_id() or ""):
        try:
            result = in_background(
                name,
                upstream,
                started,
                remaining,
                Event(),
                local_seconds=_LOCAL_SECONDS,
                is_loading=lambda: is_loading,
            )
        except ModelFailed as failure:
            is_unfair = remaining() <= 0 and granted < min(seconds / 2, MIN_FAIR_SECONDS)
            is_blameless = failure.is_blameless or is_unfair or (is_loading and failure.outcome == "timeout")
            raise ModelFailed(failure.outcome, is_blameless=is_blameless) from None
    upstream.record_loaded()
    return result


def in_background(
    name: str,
    upstream: Upstream,
    work: Callable[[], T],
    remaining: Callable[[], float],
    stop: Event,
    *,
    local_seconds: float = 0.0,
    is_loading: Callable[[], bool] = lambda: False,
) -> T:
    """Return the result of `work`, done in a daemon thread and the caller's context.

    Work that takes too long is abandoned, and holds a seat of `upstream` until it ends: it still occupies the provider.

    :param remaining: how many seconds the caller still waits. Called repeatedly.
    :param stop: set when the client has left.
    :param local_seconds: how long the turn keeps its own seat, because the work may compute in this process.
    :param is_loading: whether the provider may be loading its model, so that no answer in time is no failure.
    :raises ModelFailed: the work failed or was abandoned, or all seats were taken.
    """
    holder = context.holder()

    def patience() -> float:
        return 0.0 if stop.is_set() else remaining()

    if not upstream.seats.acquire(holder):
        with seats.waiting():
            if not upstream.seats.acquire(holder, patience):
                raise ModelFailed("stopped" if stop.is_set() else "busy")
    ended, results, faults = Event(), list[T](), list[ModelFailed]()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            # Not the exception itself: its frames hold a connection that has to close now.
            faults.append(failure_of(error))
            if faults[0].outcome not in NOT_ATTEMPTED:
                log.warning("%s failed: %s", name, type(error).__name__)
        finally:
            upstream.seats.release(holder)
            ended.set()

    try:
        Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    except BaseException:
        upstream.seats.release(holder)
        raise
    if not ended.wait(max(0.0, min(local_seconds, remaining()))):
        with seats.waiting():
            while not ended.wait(max(0.0, min(_POLL_SECONDS, remaining()))):
                if stop.is_set():
                    raise ModelFailed("stopped")
                if remaining() <= 0:
                    if is_loading():
                        log.info("%s: no answer yet, its model may be loading", name)
                    else:
                        log.warning("%s failed: no answer in time", name)
                    raise ModelFailed("timeout")
    if faults:
        raise faults[0]
    return results[0]
