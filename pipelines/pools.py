"""Threads of their own for work that waits for somebody else's server, or that is heavy on purpose.

Threat: the threads that serve every request are few. An identity provider that accepts connections and says nothing, a
tool that is tested sixty times, a flood of passwords to hash: each would have all of those threads wait for it. Here
each kind of such work has threads of its own, of which one caller has a part; what does not fit is refused at once, for
a queue in front of a server that hangs helps nobody.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from tenants.errors import Busy

T = TypeVar("T")


class Pool:
    """Runs one kind of work. Belongs to the event loop.

    :param name: how its threads are called.
    :param threads: how much is at work at once.
    :param each: how much of one caller's is accepted at once.
    :param waiting: how much of all callers' waits for a thread.
    """

    def __init__(self, name: str, threads: int, *, each: int, waiting: int = 0) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._each = each
        self._most = threads + waiting
        self._accepted: Counter[str] = Counter()

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """What the work returns, in the context of this call. Raises `Busy` when the pool, or the caller's part of it,
        is full."""
        if self._accepted[caller] >= self._each or self._accepted.total() >= self._most:
            raise Busy
        self._accepted[caller] += 1
        loop = asyncio.get_running_loop()
        future = self._threads.submit(copy_context().run, work)
        # When the thread is free, not when the caller has left.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._free, caller))
        return await asyncio.wrap_future(future)

    def _free(self, caller: str) -> None:
        self._accepted[caller] -= 1
        if not self._accepted[caller]:
            del self._accepted[caller]
