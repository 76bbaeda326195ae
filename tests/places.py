"""Queries in a place where a slow database would block more than their caller."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, local
from traceback import extract_stack

from settings import Settings
from tenants.storage import database

MISPLACED = "a query is misplaced"
"""Beginning of the log message about such a query."""

log = logging.getLogger("opora.database")


class _Sessions(local):
    """The sessions that are open in a thread."""

    open = 0


_SESSIONS = _Sessions()
_waited_for = database._waited_for


def watch() -> None:
    """Have misplaced queries of this process logged."""
    database._waited_for = _watched


@contextmanager
def _watched(settings: Settings | None) -> Iterator[None]:
    _check_place()
    _SESSIONS.open += 1
    try:
        with _waited_for(settings):
            yield
    finally:
        _SESSIONS.open -= 1


def _check_place() -> None:
    """Report a query where a slow database would block more than its caller.

    On the event loop it blocks every request, unless the loop is that of one turn, in the thread of its seat. Inside
    another session it needs a second connection, and if all connections of the pool belong to threads that wait for a
    second one, none of them ever continues.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        place = "inside another session" if _SESSIONS.open else ""
    else:
        place = "" if current_thread().name.startswith("seat") else "on the event loop"
    if place:
        frames = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in extract_stack()[-12:-4]]
        log.error("%s: %s: %s", MISPLACED, place, " ".join(frames))
