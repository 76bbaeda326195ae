"""Turns of reads: few requests of one tenant's staff compute at once, the others wait.

Threat: all tenants share the threads that serve pages and lists, and one interpreter. Forty tabs of the desk, or forty
exports, of one tenant would have nearly all of them. A tenant with several reads at once also lets questions go first.
"""

import asyncio
from asyncio import Lock, Semaphore
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from starlette.types import Message, Send

from tenants.core import fairness

MOST_READS = 4
"""Reads of one tenant's staff that compute at once in a process."""

_GAP_SECONDS = 0.005
"""Time between two looks for a moment without a question."""


@dataclass(slots=True, weakref_slot=True)
class _Turns:
    """The turns of one tenant. `reads`: how many wait or compute."""

    free: Semaphore = field(default_factory=lambda: Semaphore(MOST_READS))
    next: Lock = field(default_factory=Lock)
    reads: int = 0


class Reads:
    """The turns of all tenants. Belongs to the event loop."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, _Turns] = WeakValueDictionary()

    def read_of(self, tenant_id: str) -> "Read":
        """Return a read of a tenant that has not begun."""
        return Read(self._turns.setdefault(tenant_id, _Turns()))


class Read:
    """A read that computes between `begin` and `end`, except while its client takes a part of the response."""

    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        self._has_turn = False

    async def begin(self) -> None:
        """Wait for a turn; if the tenant has several reads, also for a moment without a question."""
        if self._turns.reads:
            async with self._turns.next:
                await _let_questions_go_first()
        await self._take_turn()

    async def _take_turn(self) -> None:
        self._turns.reads += 1
        try:
            await self._turns.free.acquire()
        except asyncio.CancelledError:
            self._turns.reads -= 1
            raise
        self._has_turn = True

    def end(self) -> None:
        """Give the turn to another read."""
        if self._has_turn:
            self._has_turn = False
            self._turns.reads -= 1
            self._turns.free.release()

    async def send(self, send: Send, message: Message) -> None:
        """Send a part of the response; the next part is computed in another turn."""
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        goes_on = self._has_turn and not is_last
        self.end()
        await send(message)
        if goes_on:
            await self._take_turn()


async def _let_questions_go_first() -> None:
    """Wait until no question is in work, or for `fairness.PATIENCE_SECONDS`."""
    until = asyncio.get_running_loop().time() + fairness.PATIENCE_SECONDS
    while fairness.has_questions() and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(_GAP_SECONDS)
