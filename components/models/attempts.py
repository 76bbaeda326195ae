"""Asking what is no chat model, in bounded time: clients bound the wait for a piece of a reply, not a whole call."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from math import isfinite
from threading import Thread
from typing import TypeVar

from components.models.breaker import Breaker
from components.models.calls import current
from components.models.failures import ModelFailed, outcome_of

log = logging.getLogger("opora.models")

SHARE = 0.5
"""Of the time left to the turn, waited for one call: what stands in needs some too."""

T = TypeVar("T")


def attempt(name: str, breaker: Breaker, work: Callable[[], T]) -> T:
    """What `work` returns. It runs in a thread of its own, which is left behind when it takes too long.

    :param name: for the log.
    :param breaker: told how it went.
    :raises ModelFailed: it failed or took too long, or the breaker is open.
    """
    calls = current()
    left = calls.remaining()
    if left <= 0:
        raise ModelFailed("timeout")
    if not breaker.admit():
        raise ModelFailed("open_circuit")
    made: Future[T] = Future()
    Thread(target=copy_context().run, args=(_settle, made, work), name=name, daemon=True).start()
    try:
        result = made.result(left * SHARE if isfinite(left) else None)
    except Exception as fault:
        breaker.failed()
        log.warning("%s failed: %s", name, type(fault).__name__)
        raise ModelFailed(outcome_of(fault)) from fault
    breaker.worked()
    return result


def _settle(made: Future[T], work: Callable[[], T]) -> None:
    try:
        made.set_result(work())
    except BaseException as fault:
        made.set_exception(fault)
