"""Turns of reads: few requests of one tenant's staff compute at once, the others wait.

Threat: all tenants share the threads that serve pages and lists. Forty tabs of the desk, or forty exports, of one
tenant would have nearly all of them.
"""

from asyncio import Semaphore
from weakref import WeakValueDictionary

from starlette.types import Message, Send

MOST_READS = 4
"""Reads of one tenant's staff that compute at once in a process."""


class Reads:
    """The turns of all tenants. Belongs to the event loop."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()

    def read_of(self, tenant_id: str) -> "Read":
        """Return a read of a tenant that has not begun."""
        return Read(self._turns.setdefault(tenant_id, Semaphore(MOST_READS)))


class Read:
    """A read that computes between `begin` and `end`, except while its client takes a part of the response."""

    def __init__(self, turns: Semaphore) -> None:
        self._turns = turns
        self._has_turn = False

    async def begin(self) -> None:
        """Wait for a turn."""
        await self._turns.acquire()
        self._has_turn = True

    def end(self) -> None:
        """Give the turn to another read."""
        if self._has_turn:
            self._has_turn = False
            self._turns.release()

    async def send(self, send: Send, message: Message) -> None:
        """Send a part of the response; the next part is computed in another turn."""
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        goes_on = self._has_turn and not is_last
        self.end()
        await send(message)
        if goes_on:
            await self.begin()
