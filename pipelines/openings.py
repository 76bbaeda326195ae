"""Openings of event streams: few are at work at once, and the addresses that open streams take turns.

Threat: thousands of streams opened at once, each of which checks its token and looks up its tenant before any limit of
its caller applies. All of that runs on the event loop, where another request waits for all of them at each step.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tenants.core.errors import RateLimited

AT_WORK, AT_WORK_OF_ADDRESS = 6, 2
"""Openings at work at once, in all and from one address."""

WAITING = 1_000
"""Openings that wait at once. A further one gets 429; widgets try again later."""

_SHARE = 10
"""As many openings of one address wait as a tenth of what is left free."""

_SECONDS_UNTIL_LESS = 5

REFUSAL_SECONDS = 2.0
"""Time over which refusals that come at once are spread: one takes about 1 ms of the event loop."""

_REFUSALS = 1_000


class Openings:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._at_work: Counter[str] = Counter()
        self._lines: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._waiting = self._refused = 0

    async def admit(self, address: str) -> AbstractContextManager[None]:
        """Wait until an opening from the address may begin. Returns the context in which it is at work.

        :raises RateLimited: too many wait already.
        """
        if len(self._lines.get(address, ())) * _SHARE >= WAITING - self._waiting:
            self._refused = (self._refused + 1) % _REFUSALS
            await asyncio.sleep(REFUSAL_SECONDS * self._refused / _REFUSALS)
            raise RateLimited(_SECONDS_UNTIL_LESS)
        admitted = asyncio.get_running_loop().create_future()
        self._lines[address].append(admitted)
        self._waiting += 1
        self._fill()
        try:
            await admitted
        except asyncio.CancelledError:
            # `_fill` skips a cancelled future. Without it, the opening has been admitted and is at work.
            if not admitted.cancelled():
                self._end(address)
            raise
        return self._working(address)

    @contextmanager
    def _working(self, address: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(address)

    def _end(self, address: str) -> None:
        self._at_work[address] -= 1
        self._at_work += Counter()  # drops those that have none
        self._fill()

    def _fill(self) -> None:
        """Admit the longest waiting address that may have another opening at work, then the next one."""
        while self._at_work.total() < AT_WORK:
            address = next((one for one in self._lines if self._at_work[one] < AT_WORK_OF_ADDRESS), None)
            if address is None:
                return
            line = self._lines.pop(address)
            admitted = line.popleft()
            self._waiting -= 1
            if line:
                self._lines[address] = line
            if not admitted.cancelled():
                self._at_work[address] += 1
                admitted.set_result(None)
