"""Turns of reads and changes: few requests of one tenant's staff, of its visitors, and of an address without a token,
are at work at once; the others wait.

Threat: all tenants share the threads that serve pages and lists, and one interpreter. Forty tabs of the desk, or forty
exports, of one tenant would have nearly all of them; so would twenty reads of a visitor's long chat. While questions
are in progress, or another tenant is served, reads of a tenant compute one after the other, and changes two at a time,
with pauses.
"""

import asyncio
from asyncio import Semaphore
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

from starlette.types import Message, Send

from tenants.core import fairness

MOST_READS = 4
"""Reads of one tenant's staff, or of its visitors, that compute at once in a process."""

MOST_CHANGES = 4
"""Changes by one tenant's staff, or by its visitors, at work at once. More of them make those of others wait for the
database's write lock."""

_READS_BESIDE, _CHANGES_BESIDE = 1, 2
"""The same while questions are in progress, or another tenant is served."""

_OTHERS_SECONDS = 1.0
"""Time after a request of another tenant in which its next one is expected."""

_SHORT_SECONDS = 0.25
"""A turn up to this long needs no pause for the requests of other tenants, only for questions.

With pauses from 0.05 s on, 20 pages of 0.06 s, as tabs load them at each change of a chat, took 4.7 s instead of 1.2.
"""

_GAP_SECONDS = 0.005
"""Time between two looks for a moment without a question."""

_PAUSE_SHARE, _MOST_PAUSE_SECONDS = 3.0, 0.2
"""Pause after a turn that lets questions go first: a multiple of the time it took, and the limit."""


@dataclass(slots=True, weakref_slot=True)
class _Turns:
    """The turns of one tenant: `beside` while questions are in progress or another tenant is served, else `free`."""

    free: Semaphore
    beside: Semaphore


class Reads:
    """The turns of all tenants. Belongs to the event loop."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[tuple[str, bool, bool, bool, bool, bool], _Turns] = WeakValueDictionary()
        # The two tenants that were served last, each with the time of its last request.
        self._latest = self._earlier = ("", float("-inf"))

    def note_request(self, tenant_id: str) -> None:
        """Note that a tenant is served."""
        if self._latest[0] != tenant_id:
            self._earlier = self._latest
        self._latest = (tenant_id, asyncio.get_running_loop().time())

    def has_others(self, tenant_id: str) -> bool:
        """Whether another tenant was served a moment ago."""
        other, at = self._earlier if self._latest[0] == tenant_id else self._latest
        return other != "" and asyncio.get_running_loop().time() - at < _OTHERS_SECONDS

    def turn_of(
        self,
        tenant_id: str,
        *,
        is_change: bool = False,
        by_visitor: bool = False,
        is_large: bool = False,
        is_notice: bool = False,
        is_search: bool = False,
    ) -> "Turn":
        """Return the turn of a request of a tenant, not begun. Changes, notices, searches and visitors have separate
        turns.

        Large changes are made one after the other, always with pauses. So are searches, with pauses beside others only.
        """
        free, beside = (MOST_CHANGES, _CHANGES_BESIDE) if is_change else (MOST_READS, _READS_BESIDE)
        alone = Semaphore(1)
        turns = _Turns(alone, alone) if is_search else _Turns(Semaphore(free), Semaphore(1 if is_large else beside))
        key = (tenant_id, is_change, by_visitor, is_large, is_notice, is_search)
        has_others = partial(self.has_others, tenant_id)
        short = 0.0 if is_search else _SHORT_SECONDS
        waits = not by_visitor
        return Turn(self._turns.setdefault(key, turns), has_others, waits=waits, pauses=is_large, short=short)


class Turn:
    """A request that computes between `begin` and `end`, except while its client takes a part of the response.

    :param has_others: whether another tenant is served.
    :param waits: wait for a moment without questions, too. Pages of staff cost more than those of visitors.
    :param pauses: take turns as if questions were in progress.
    :param short: seconds up to which no pause is made for other tenants.
    """

    def __init__(
        self, turns: _Turns, has_others: Callable[[], bool], *, waits: bool, pauses: bool, short: float
    ) -> None:
        self._turns = turns
        self._has_others = has_others
        self._waits = waits
        self._pauses = pauses
        self._short = short
        self._held: Semaphore | None = None
        self._is_beside = False
        self._began = 0.0
        self._start: Message | None = None

    async def begin(self) -> None:
        """Wait for a turn."""
        _CURRENT.set(self)
        self._pauses = self._pauses or fairness.has_questions()
        self._is_beside = self._pauses or self._has_others()
        turn = self._turns.beside if self._is_beside else self._turns.free
        await turn.acquire()
        self._held = turn
        if self._waits and self._is_beside:
            await _let_questions_go_first()
        self._began = asyncio.get_running_loop().time()

    def end(self) -> None:
        """Give the turn to another request."""
        if self._held is None:
            return
        if self._is_beside:
            loop = asyncio.get_running_loop()
            took = loop.time() - self._began if self._began else 0.0
            pause = _PAUSE_SHARE * took if self._pauses or took > self._short else 0.0
            loop.call_later(min(pause, _MOST_PAUSE_SECONDS), _release, self._held, self._turns)
        else:
            self._held.release()
        self._held = None

    async def send(self, send: Send, message: Message) -> None:
        """Send a part of the response, the start with the first part of the body. The next part has another turn."""
        if message["type"] == "http.response.start" and self._held is not None:
            self._start = message
            return
        goes_on = self._held is not None and message.get("more_body", False)
        self.end()
        if self._start is not None:
            await send(self._start)
            self._start = None
        await send(message)
        if goes_on:
            await self.begin()


_CURRENT: ContextVar[Turn | None] = ContextVar("opora_turn", default=None)


def give_up_turn() -> None:
    """End the turn of the request in progress: it goes on in a pool, where it may wait for long."""
    if (turn := _CURRENT.get()) is not None:
        turn.end()


def _release(held: Semaphore, _turns: _Turns) -> None:
    """End a pause. The turns of a tenant are kept until then, even if no other request of it waits."""
    held.release()


async def _let_questions_go_first() -> None:
    """Wait until no question is in progress, or for `fairness.PATIENCE_SECONDS`."""
    until = asyncio.get_running_loop().time() + fairness.PATIENCE_SECONDS
    while fairness.has_questions() and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(_GAP_SECONDS)
