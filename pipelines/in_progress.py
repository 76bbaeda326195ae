"""Requests in progress at the gate and the bytes of their bodies, so that one caller leaves room for the others."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TypeVar

from cachetools import LRUCache

from pipelines.openings import Openings
from tenants.chats.visitors import SCOPE as VISIT
from tenants.core.context import Tenant
from tenants.core.errors import Busy, RateLimited
from tenants.core.fair_semaphore import may_take_more

Key = TypeVar("Key")

MOST_OPEN = 10_000
"""Maximum number of requests in progress, including open streams. One tenant may have three quarters of them."""

MOST_OPEN_OF_VISITOR = 25
"""Requests in progress of one visitor, including the streams of all their tabs."""

MOST_FOLLOWED, MOST_FOLLOWED_BY_VISITORS = 500, 1_000
"""Streams of events that the staff of a tenant, and its visitors, have open at once."""

MOST_FOLLOWED_BY_ONE, MOST_FOLLOWED_BY_VISITOR, MOST_FOLLOWED_FROM_ADDRESS = 100, 10, 500
"""The same of one operator or token's subject, of one visitor, and of the visitors at one address who have not signed
in. The tabs of a browser share a stream.
"""

MOST_HELD_BYTES = 320_000_000
"""Bytes of bodies held at once, without the first `FREE_BYTES` of each: 120 MB for staff and tokens, in memory, and
200 MB for visitors, whose files are on disk while they arrive. One tenant may have three quarters of either. Larger
uploads are written to the store of files as they come.
"""

_VISITORS_SHARE = 0.625
_SENDERS_SHARE = 1
"""A signed-in visitor, or an address, may hold as much of the visitors' part as is left free: half if no other sends.
New visitors cost nothing, so they are counted by address. The tenant's own server sends for many customers: it is
limited by the tenant's part alone.
"""

ANONYMOUS_RATE, ANONYMOUS_BURST = 100.0, 200.0
"""Requests a second that need no token or have no valid one, from one address, and how many of them at once."""

_ANONYMOUS_PATIENCE_SECONDS = 2.0
"""Longest wait of such a request. Those that wait are bounded by it, even if their clients have left."""

FREE_BYTES = 64_000
_SECONDS_UNTIL_LESS = 5
_ADDRESSES = 10_000
"""Addresses whose latest requests are counted."""


class InProgress:
    """Counts of one process."""

    def __init__(self, most_open: int = MOST_OPEN, most_held: int = MOST_HELD_BYTES) -> None:
        self._most_open = most_open
        self._most_held = {True: int(most_held * _VISITORS_SHARE), False: int(most_held * (1 - _VISITORS_SHARE))}
        self._open: Counter[str] = Counter()
        self._open_of_visitors: Counter[Tenant] = Counter()
        self._followed: Counter[tuple[str, bool, str]] = Counter()
        self._paid_until: LRUCache[str, float] = LRUCache(_ADDRESSES)
        self._held: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self._held_of_senders: Counter[str] = Counter()
        self.openings = Openings()

    @contextmanager
    def holding_open(self, tenant_id: str) -> Iterator[None]:
        """Count a request of the tenant while the block lasts. Raises `Busy` when it has too many: each stream and each
        upload keeps a connection, of which there are so many for all tenants."""
        if not may_take_more(self._open[tenant_id], self._most_open - self._open.total()):
            raise Busy
        with counted(self._open, tenant_id):
            yield

    @contextmanager
    def visiting(self, visitor: Tenant) -> Iterator[None]:
        """Count a request of a visitor for the length of the block. Raises `RateLimited` when too many are open: each
        event of a chat is sent to all of its streams."""
        if self._open_of_visitors[visitor] >= MOST_OPEN_OF_VISITOR:
            raise RateLimited(_SECONDS_UNTIL_LESS)
        with counted(self._open_of_visitors, visitor):
            yield

    async def pace(self, address: str) -> None:
        """Let a request without a valid token wait until its address may send one. Raises `RateLimited` after a while.

        Threat: the cheapest requests, without end, from a few connections. A request that is refused does not count, so
        that an address is served again once it sends fewer.
        """
        now = monotonic()
        paid_until = max(now, self._paid_until.get(address, 0.0)) + 1 / ANONYMOUS_RATE
        wait = paid_until - now - ANONYMOUS_BURST / ANONYMOUS_RATE
        if wait > _ANONYMOUS_PATIENCE_SECONDS:
            await asyncio.sleep(_ANONYMOUS_PATIENCE_SECONDS)
            raise RateLimited(_SECONDS_UNTIL_LESS)
        self._paid_until[address] = paid_until
        await asyncio.sleep(wait)

    @contextmanager
    def following(self, caller: Tenant) -> Iterator[None]:
        """Count a stream of events for the length of the block. Raises `RateLimited` when too many are open.

        Threat: each change of a chat wakes all streams that show it, and new visitors cost nothing.
        """
        by_visitor = caller.scopes == {VISIT}
        bounds = {
            "": MOST_FOLLOWED_BY_VISITORS if by_visitor else MOST_FOLLOWED,
            f"of {caller.site} {caller.subject}": MOST_FOLLOWED_BY_VISITOR if by_visitor else MOST_FOLLOWED_BY_ONE,
        }
        if caller.sender:
            bounds[f"from {caller.sender}"] = MOST_FOLLOWED_FROM_ADDRESS
        keys = {(caller.tenant_id, by_visitor, name): most for name, most in bounds.items()}
        if any(self._followed[key] >= most for key, most in keys.items()):
            raise RateLimited(_SECONDS_UNTIL_LESS)
        with ExitStack() as stack:
            for key in keys:
                stack.enter_context(counted(self._followed, key))
            yield

    def hold(self, caller: Tenant, size: int) -> None:
        """Count the next bytes of a large body. Raises `Busy` if too many are held.

        Threat: hundreds of bodies that never end fill the memory, or the disk with temporary files.
        """
        by_visitor = caller.scopes == {VISIT}
        held = self._held[by_visitor]
        free = self._most_held[by_visitor] - held.total()
        if not may_take_more(held[caller.tenant_id], free):
            raise Busy
        if caller.sender and not may_take_more(self._held_of_senders[caller.sender], free, _SENDERS_SHARE):
            raise Busy
        held[caller.tenant_id] += size
        if caller.sender:
            self._held_of_senders[caller.sender] += size

    def let_go(self, caller: Tenant, size: int) -> None:
        by_visitor = caller.scopes == {VISIT}
        self._held[by_visitor] -= Counter({caller.tenant_id: size})
        if caller.sender:
            self._held_of_senders -= Counter({caller.sender: size})


@contextmanager
def counted(counts: Counter[Key], key: Key) -> Iterator[None]:
    """Count something in progress while the block runs."""
    counts[key] += 1
    try:
        yield
    finally:
        counts[key] -= 1
        if not counts[key]:
            del counts[key]
