"""Separate thread pools for slow work: calls of external servers, password hashing, file scans, asking gaps again.

Threat: few threads serve all requests. An identity provider that does not answer, sixty tests of a slow tool or a flood
of passwords would occupy all of them. Each kind of slow work therefore has a pool, one caller has a part of it, and the
rest is refused at once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from tenants.core.errors import Busy
from tenants.work.seats import Seats

T = TypeVar("T")


class Pool:
    """Run one kind of work in threads. Belongs to the event loop.

    :param turns: threads for one tenant; waiting work is taken from tenants in turn. 0: no work waits for a thread.
    :param patience: seconds that work waits for a thread; None: as long as it takes.
    """

    def __init__(self, name: str, threads: int, *, turns: int = 0, patience: float | None = None) -> None:
        self._threads = Seats(threads, threads, each=turns or threads, name=name)
        self._most = None if turns else threads
        self._patience = patience
        self._accepted: Counter[str] = Counter()
        self._total = 0

    async def run(self, bounds: Mapping[str, int], work: Callable[[], T], *, sender: str = "") -> T:
        """Run the work in a copy of the current context and return its result.

        :param bounds: names of callers, each with its limit of accepted work.
        :param sender: takes turns with the other senders of the tenant, or of callers without one.
        :raises Busy: the pool is full, a caller is at its limit, or no thread was free in time.
        """
        full = self._most is not None and self._total >= self._most
        if full or any(self._accepted[name] >= most for name, most in bounds.items()):
            raise Busy
        self._count(bounds, 1)
        loop = asyncio.get_running_loop()
        future: Future[T] = self._threads.submit(work, sender=sender)
        # The thread counts until it is free, even when the caller has disconnected.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._count, bounds, -1))
        running = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([running], timeout=self._patience)
            if not done and future.cancel():
                raise Busy
            return await running
        finally:
            future.cancel()  # if this task was cancelled

    def close(self) -> None:
        self._threads.close()

    def _count(self, names: Iterable[str], change: int) -> None:
        self._total += change
        for name in names:
            self._accepted[name] += change
            if not self._accepted[name]:
                del self._accepted[name]
