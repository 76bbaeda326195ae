"""Threads of their own for work that waits for somebody else's server, or that is heavy on purpose.

Threat: the threads that serve every request are few. An identity provider that accepts connections and says nothing, a
tool that is tested sixty times, a flood of passwords to hash: each would have all of those threads wait for it. Here
each kind of such work has threads of its own, of which one caller has a part. What does not fit is refused at once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from tenants.errors import Busy
from tenants.seats import Seats

T = TypeVar("T")


class Pool:
    """Runs one kind of work. Belongs to the event loop.

    :param name: how its threads are called.
    :param threads: how much is at work at once.
    :param turns: how much of one tenant's is at work at once, tenants taking turns at what waits; 0: nothing waits.
    """

    def __init__(self, name: str, threads: int, *, turns: int = 0) -> None:
        self._threads = Seats(threads, threads, each=turns) if turns else ThreadPoolExecutor(threads, name)
        self._most = None if turns else threads
        self._accepted: Counter[str] = Counter()
        self._total = 0

    async def run(self, bounds: Mapping[str, int], work: Callable[[], T]) -> T:
        """What the work returns, in the context of this call.

        :param bounds: on whose account it is, and how much is accepted of each at once.
        :raises Busy: the pool, or the part of somebody in it, is full.
        """
        full = self._most is not None and self._total >= self._most
        if full or any(self._accepted[name] >= most for name, most in bounds.items()):
            raise Busy
        self._count(bounds, 1)
        loop = asyncio.get_running_loop()
        future: Future[T] = self._threads.submit(partial(copy_context().run, work))
        # When the thread is free, not when the caller has left.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._count, bounds, -1))
        return await asyncio.wrap_future(future)

    def _count(self, names: Iterable[str], change: int) -> None:
        self._total += change
        for name in names:
            self._accepted[name] += change
            if not self._accepted[name]:
                del self._accepted[name]
