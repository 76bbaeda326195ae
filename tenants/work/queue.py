"""Background work: tasks of tenants and periodic tasks, run by one of two engines.

On PostgreSQL procrastinate runs them (`tenants.work.queue_postgres`), so that any number of processes share the work.
On SQLite the only process of the service does (`LocalQueue`). Both engines also look for waiting work regularly, so
that work accepted before a crash, by an older version or in another process is found.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event
from time import monotonic
from typing import Literal, Protocol, TypeAlias, TypeVar

from sqlalchemy import event, text

from settings import Settings
from tenants.core import background_loop
from tenants.core.errors import CallerError, trail
from tenants.storage import database
from tenants.storage.tenant_session import TenantSession

log = logging.getLogger("opora.queue")

TaskName: TypeAlias = Literal["ingest"]

_POLL_SECONDS = 1.0
"""Interval of checks for work that another process accepted; work of this process starts at once."""

_PERIODIC_THREADS = 4
_STEP_THREADS = 8
TURN_SECONDS = 0.5
"""Time after which a step goes on beside those of other tenants."""

T = TypeVar("T")
_arrived = Event()
"""Set when this process accepts work, so that its `LocalQueue` starts it at once."""

_DEFER = text(
    "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)"
    " VALUES (:task, :task, :lock, :lock, jsonb_build_object('tenant_id', CAST(:tenant AS text)))"
    " ON CONFLICT DO NOTHING"
)
"""The lock makes a tenant's tasks of one name run one after the other; of those that wait, there is one."""


class Work(Protocol):
    """A task of a tenant in progress. Steps run in any thread, one after the other, in turn with other tenants'."""

    def step(self) -> float | None:
        """Do a part. None: there is more to do; otherwise the seconds until the task may start again."""

    def pause(self) -> None:
        """Stop between two steps. The rest is done when the task starts again."""


@dataclass(frozen=True, slots=True)
class TenantTask:
    """A task that runs for one tenant, at most once at a time for each.

    :param waiting: returns the tenants with something to do, the longest waiting one first.
    :param begin: starts the work for a tenant.
    """

    name: TaskName
    waiting: Callable[[], Iterable[str]]
    begin: Callable[[str], Work]


@dataclass(frozen=True, slots=True)
class Periodic:
    """A task of the installation that runs again and again, at most once at a time.

    :param run: is called with an event that is set when the process stops; a long run ends early then. It may return
        the seconds until the next run, to make it earlier.
    :param every: seconds between two runs: less than a minute, or a number of whole minutes up to an hour.
    :param hour: hour of the day (UTC) of a daily run, instead of `every`.
    :param at_start: whether it also runs when a process starts.
    :param wake: runs the task when it is set.
    """

    name: str
    run: Callable[[Event], float | None]
    every: int = 0
    hour: int | None = None
    at_start: bool = False
    wake: Event | None = None

    def run_logged(self, closing: Event) -> float | None:
        """Run once. An error is logged: the database may be away for a while."""
        if not closing.is_set():
            try:
                return self.run(closing)
            except Exception as error:
                log.error("%s: %s", self.name, trail(error))
        return None


class Turns:
    """Steps of the tenants' tasks, one at a time and in turn: together they delay questions like one thread.

    A step that takes longer than `TURN_SECONDS` ends its turn, and goes on beside the next one.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_STEP_THREADS, thread_name_prefix="task")
        self._turn = asyncio.Lock()

    async def take(self, step: Callable[[], T]) -> T:
        """Return the result of a step."""
        async with self._turn:
            running = asyncio.get_running_loop().run_in_executor(self._threads, step)
            await asyncio.wait([running], timeout=TURN_SECONDS)
        return await running

    def close(self) -> None:
        """Wait for the steps in progress."""
        self._threads.shutdown()


class Queue(ABC):
    """An engine that runs between `warm_up` and `close`.

    :param threads: most periodic tasks at a time.
    """

    def __init__(self, tasks: Sequence[TenantTask], periodic: Sequence[Periodic], threads: int) -> None:
        self.closing = Event()
        self._tasks = tasks
        self._periodic = periodic
        self._turns = Turns()
        self._runs = ThreadPoolExecutor(threads, thread_name_prefix="periodic")
        self._working: Future[None] | None = None

    def warm_up(self) -> None:
        """Begin."""
        self._working = background_loop.start(self._work_until_closed())

    def close(self) -> None:
        """Begin nothing new, and wait for the steps in progress. What is left is done after the next start."""
        self.closing.set()
        if self._working is not None:
            self._interrupt()
            self._working.result()
        self._turns.close()
        self._runs.shutdown()

    @abstractmethod
    async def _work_until_closed(self) -> None:
        """Run tasks until `closing` is set."""

    @abstractmethod
    def _interrupt(self) -> None:
        """End a wait for work, because `closing` is set."""


def defer(session: TenantSession, task: TaskName) -> None:
    """Have a task run for the tenant of the session, once its transaction is committed."""
    if session.get_bind().dialect.name == "postgresql":
        tenant_id = session.tenant_id
        session.execute(_DEFER, {"task": task, "lock": lock_of(task, tenant_id), "tenant": tenant_id})
    else:
        event.listen(session, "after_commit", lambda _: _arrived.set(), once=True)


def lock_of(task: str, tenant_id: str) -> str:
    """Return the name under which the tenant's tasks exclude each other."""
    return f"{task}:{tenant_id}"


def check_shared(settings: Settings) -> None:
    """Raise `CallerError` with the code `worker_needs_servers` if processes cannot share background work."""
    if not (database.is_shared(settings) and settings.qdrant_url):
        raise CallerError("worker_needs_servers")


def create(settings: Settings, tasks: Sequence[TenantTask], periodic: Sequence[Periodic]) -> Queue:
    """Return the engine for the installation's database, not yet started."""
    if database.is_shared(settings):
        from tenants.work.queue_postgres import PostgresQueue

        return PostgresQueue(settings, tasks, periodic)
    return LocalQueue(tasks, periodic)


class LocalQueue(Queue):
    """Runs all background work of an installation whose service is a single process."""

    def __init__(self, tasks: Sequence[TenantTask], periodic: Sequence[Periodic]) -> None:
        super().__init__(tasks, periodic, _PERIODIC_THREADS)
        self._due = {one.name: 0.0 if one.at_start else monotonic() + seconds_until(one) for one in periodic}
        self._active: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._paused: dict[tuple[str, str], float] = {}

    def _interrupt(self) -> None:
        _arrived.set()

    async def _work_until_closed(self) -> None:
        while not self.closing.is_set():
            for one in self._periodic:
                woken = one.wake is not None and one.wake.is_set()
                if monotonic() >= self._due[one.name] or (woken and self._due[one.name] != float("inf")):
                    if one.wake is not None:
                        one.wake.clear()
                    self._due[one.name] = float("inf")
                    self._runs.submit(self._run, one)
            try:
                await self._admit()
            except Exception as error:
                log.error("work is left waiting: %s", trail(error))
            await asyncio.to_thread(_arrived.wait, _POLL_SECONDS)
            _arrived.clear()
        await asyncio.gather(*self._active.values())

    def _run(self, one: Periodic) -> None:
        earlier = one.run_logged(self.closing)
        self._due[one.name] = monotonic() + (seconds_until(one) if earlier is None else earlier)

    async def _admit(self) -> None:
        """Start the tasks of tenants that have something to do."""
        for task in self._tasks:
            for tenant_id in await asyncio.to_thread(task.waiting):
                key = task.name, tenant_id
                if key not in self._active and self._paused.get(key, 0.0) <= monotonic():
                    self._paused.pop(key, None)
                    self._active[key] = asyncio.create_task(self._work(key, task.begin(tenant_id)))

    async def _work(self, key: tuple[str, str], work: Work) -> None:
        pause = None
        try:
            while pause is None and not self.closing.is_set():
                pause = await self._turns.take(lambda: None if self.closing.is_set() else work.step())
            if pause is None:
                await self._turns.take(work.pause)
            else:
                self._paused[key] = monotonic() + pause
        except Exception as error:
            log.error("%s of %r: %s", *key, trail(error))
        del self._active[key]


def seconds_until(task: Periodic, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """Return the seconds until the next run: for a daily one more than 0, and 24 hours at most."""
    if task.hour is None:
        return task.every
    moment = now()
    strikes = moment.replace(hour=task.hour, minute=0, second=0, microsecond=0)
    if strikes <= moment:
        strikes += timedelta(days=1)
    return (strikes - moment).total_seconds()
