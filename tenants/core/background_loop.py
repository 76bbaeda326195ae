"""Background work of a process, on an event loop apart from that of requests."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import Context
from functools import cache
from threading import Lock, Thread

_THREADS = 16
_MAKING = Lock()


class Rest(float):
    """Seconds to wait after a failure: a wake does not cut them short, but makes the step repeat once more."""


class Repeating:
    """A step that is repeated until it is closed: after the pause that it returns, or once woken.

    For work that requests must not delay, such as renewing leases.

    :param step: does the work in a thread; returns the most seconds until it is repeated, or a `Rest`. Must not raise.
    :param pace: seconds between a wake and the step, so that it does more at once.
    """

    def __init__(self, step: Callable[[], float], pace: float = 0.0) -> None:
        self._step, self._pace = step, pace
        self._woken, self._closing = asyncio.Event(), asyncio.Event()
        self._running: list[Future[None]] = []

    def start(self) -> None:
        """Do the first step now, and go on."""
        self._running.append(start(self._run()))

    def wake(self) -> None:
        """Repeat the step soon. Takes microseconds."""
        if not self._woken.is_set():
            loop().call_soon_threadsafe(self._woken.set)

    def close(self, patience: float) -> bool:
        """Do the last step. Returns False if that has not ended within the patience."""
        loop().call_soon_threadsafe(self._closing.set)
        loop().call_soon_threadsafe(self._woken.set)
        return not wait(self._running, patience).not_done

    async def _run(self) -> None:
        while not self._closing.is_set():
            pause = await _in_thread(self._step)
            if isinstance(pause, Rest):
                await _await(self._closing, pause)
            else:
                await _await(self._woken, pause)
                await _await(self._closing, self._pace)
                self._woken.clear()
        await _in_thread(self._step)


def start(work: Coroutine[object, object, None]) -> Future[None]:
    """Start work on the loop, for no tenant, whatever the caller's context."""
    return Context().run(asyncio.run_coroutine_threadsafe, work, loop())


def loop() -> asyncio.AbstractEventLoop:
    """Return the loop, whose thread is a daemon: commands have no other loop, and end without closing it."""
    with _MAKING:
        return _made()


@cache
def _made() -> asyncio.AbstractEventLoop:
    made = asyncio.new_event_loop()
    made.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="background"))
    Thread(target=made.run_forever, name="background", daemon=True).start()
    return made


async def _in_thread(step: Callable[[], float]) -> float:
    """Return the result of a step, done in a thread that does not keep the process from ending."""
    running = asyncio.get_running_loop()
    done: asyncio.Future[float] = running.create_future()

    def run() -> None:
        running.call_soon_threadsafe(done.set_result, step())

    Thread(target=run, name="background step", daemon=True).start()
    return await done


async def _await(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
