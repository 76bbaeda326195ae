"""Background work on PostgreSQL, by procrastinate: any number of processes share it.

A process that ends, however it ends, leaves its jobs to the others: after `STALLED_SECONDS` without its heartbeat they
start them again. Workers poll and keep no session, so a connection pooler may share them.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from time import monotonic

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from psycopg.errors import RaiseException

from settings import Settings
from tenants.core import background_loop
from tenants.core.errors import trail
from tenants.storage import database
from tenants.work.queue import Periodic, Queue, TenantTask, lock_of

log = logging.getLogger("opora.queue")

SLOTS = 8
"""Tenants that a process works for at a time."""

SLICE_SECONDS = 60.0
"""Time after which a task makes room, if the tasks of other tenants wait."""

HEARTBEAT_SECONDS, STALLED_SECONDS = 4.0, 13.0
_POLL_SECONDS = 1.0
_RECOVER_SECONDS = 5.0
"""Interval of checks for stalled jobs."""

_LATE_SECONDS = 60.0
"""Longest delay of a periodic run; a later one is left out."""

_SWEEP_SECONDS = 10.0
_CONNECTIONS = 3
_PERIODIC = "periodic"
_RETRY_SECONDS = 5.0
_NEVER = 86_400.0
_LIVE = "SELECT EXISTS (SELECT FROM procrastinate_workers WHERE last_heartbeat > now() - %s * interval '1 second')"


class PostgresQueue(Queue):
    """Two of procrastinate's workers. Tasks of tenants and periodic tasks have one each, so that long tasks never delay
    periodic ones.
    """

    def __init__(self, settings: Settings, tasks: Sequence[TenantTask], periodic: Sequence[Periodic]) -> None:
        super().__init__(tasks, periodic, len(periodic) + 1)
        self._swept = float("-inf")
        self._connector = PsycopgConnector(
            # A connection pooler may run the next statement on another connection. Procrastinate's transactions have
            # one statement each.
            kwargs={**database.connection_parameters(settings), "prepare_threshold": None, "autocommit": True},
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_RETRY_SECONDS,
        )
        self._tenants, self._installation = _app(self._connector), _app(self._connector)
        self._stop = asyncio.Event()
        self._register()

    def _interrupt(self) -> None:
        background_loop.loop().call_soon_threadsafe(self._stop.set)

    def _register(self) -> None:
        for task in self._tasks:
            self._tenants.task(name=task.name, queue=task.name)(partial(self._run_task, task))
        for one in self._periodic:
            registered = self._installation.task(name=one.name, queue=_PERIODIC, lock=one.name, queueing_lock=one.name)(
                partial(self._run_periodic, one)
            )
            self._installation.periodic(cron=cron(one))(registered)

    async def _work_until_closed(self) -> None:
        while not self.closing.is_set():
            try:
                async with self._tenants.open_async():
                    await self._work()
            except Exception as error:
                # The database may be away for a while.
                log.error("no background work: %s", trail(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), _RETRY_SECONDS)

    async def _work(self) -> None:
        for one in self._periodic:
            if one.at_start:
                with suppress(AlreadyEnqueued):
                    await self._installation.tasks[one.name].defer_async(timestamp=0)
        # Before jobs are fetched, so that what waits already is not deferred again.
        await self._recover()
        workers = [
            asyncio.create_task(_worker(self._tenants, [task.name for task in self._tasks], SLOTS)),
            asyncio.create_task(_worker(self._installation, [_PERIODIC], len(self._periodic))),
            asyncio.create_task(self._stop.wait()),
        ]
        watches = [asyncio.create_task(self._wake()), asyncio.create_task(self._recover_until_closed())]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watch in watches:
                watch.cancel()
            for worker in workers:
                # Procrastinate then waits for the jobs in progress.
                worker.cancel()
            ended = await asyncio.gather(*workers, return_exceptions=True)
        if errors := [error for error in ended if isinstance(error, Exception)]:
            raise errors[0]

    async def _wake(self) -> None:
        """Defer the periodic tasks that this process wants to run now."""
        while True:
            for one in self._periodic:
                if one.wake is not None and one.wake.is_set():
                    one.wake.clear()
                    with suppress(AlreadyEnqueued, ConnectorException):
                        await self._installation.tasks[one.name].defer_async(timestamp=0)
            await asyncio.sleep(_POLL_SECONDS)

    async def _run_periodic(self, one: Periodic, timestamp: int) -> None:  # noqa: ARG002 - procrastinate passes it
        loop = asyncio.get_running_loop()
        earlier = await loop.run_in_executor(self._runs, one.run_logged, self.closing)
        if earlier is not None:
            with suppress(AlreadyEnqueued):
                later = self._installation.tasks[one.name].configure(schedule_in={"seconds": int(earlier)})
                await later.defer_async(timestamp=0)

    async def _run_task(self, task: TenantTask, tenant_id: str) -> None:
        work = task.begin(tenant_id)
        began, pause = monotonic(), None
        while pause is None:
            pause = await self._turns.take(work.step)
            if pause is None and (self.closing.is_set() or await self._must_yield(task, began)):
                await self._turns.take(work.pause)
                await self._defer(task, tenant_id)
                return
        if pause:
            await self._defer(task, tenant_id, pause)

    async def _must_yield(self, task: TenantTask, began: float) -> bool:
        """Return whether a task has had its time and others wait for a slot."""
        if monotonic() - began < SLICE_SECONDS:
            return False
        manager = self._tenants.job_manager
        waiting = await manager.list_jobs_async(task=task.name, status="todo")
        running = {job.lock for job in await manager.list_jobs_async(task=task.name, status="doing")}
        return any(job.scheduled_at is None and job.lock not in running for job in waiting)

    async def _defer(self, task: TenantTask, tenant_id: str, seconds: float = 0) -> None:
        lock = lock_of(task.name, tenant_id)
        later = {"milliseconds": int(1_000 * seconds)} if seconds else None
        configured = self._tenants.configure_task(task.name, lock=lock, queueing_lock=lock, schedule_in=later)
        with suppress(AlreadyEnqueued):
            await configured.defer_async(tenant_id=tenant_id)

    async def _recover_until_closed(self) -> None:
        """Recover again and again, in each process.

        This is not a job: a process that ended in the middle of it would hold its lock, and nobody would recover it.
        """
        while True:
            await asyncio.sleep(_RECOVER_SECONDS)
            try:
                await self._recover()
            except Exception as error:
                log.error("stalled work is left waiting: %s", trail(error))

    async def _recover(self) -> None:
        """Restart the jobs of processes that have ended, and find work that has no job."""
        manager = self._tenants.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
            await self._take_up(job)
        await manager.prune_stalled_workers(_NEVER)
        if monotonic() - self._swept < _SWEEP_SECONDS:
            return
        self._swept = monotonic()
        for task in self._tasks:
            for tenant_id in await asyncio.get_running_loop().run_in_executor(self._runs, task.waiting):
                await self._defer(task, tenant_id)

    async def _take_up(self, job: Job) -> None:
        log.warning("%s is restarted: its process has ended", job.lock or job.task_name)
        try:
            await self._tenants.job_manager.retry_job(job, retry_at=job.scheduled_at)
        except UniqueViolation:
            # Another one waits already.
            await self._tenants.job_manager.finish_job(job, Status.FAILED, delete_job=True)
        except ConnectorException:
            log.info("%s is restarted by another process", job.lock or job.task_name)


class _Jobs(JobManager):
    """Ends a job even if its end cannot be recorded at once: it would hold its lock for as long as this process lives.

    A slow process may seem to have ended. Then another one has taken up its job, and may have deleted it.
    """

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        until = monotonic() + STALLED_SECONDS
        while True:
            try:
                return await super().finish_job(job, status, delete_job)
            except ConnectorException as error:
                if isinstance(error.__cause__, RaiseException):
                    log.info("%s was taken up by another process", job.lock or job.task_name)
                    return None
                if monotonic() >= until:
                    raise
            await asyncio.sleep(_POLL_SECONDS)


def lacks_workers(settings: Settings, seconds: int) -> bool:
    """Return whether no process does background work now. False if the database cannot be read.

    :param seconds: most seconds to connect, and of the query.
    """
    bounds = {"database_connect_seconds": seconds, "database_statement_seconds": seconds}
    with suppress(psycopg.Error), closing(database.own_connection(settings.model_copy(update=bounds))) as connection:
        return connection.execute(_LIVE, [STALLED_SECONDS]).fetchone() == (False,)
    return False


def _app(connector: PsycopgConnector) -> App:
    app = App(connector=connector, periodic_defaults={"max_delay": _LATE_SECONDS})
    app.job_manager = _Jobs(connector)
    return app


async def _worker(app: App, queues: list[str], slots: int) -> None:
    await app.run_worker_async(
        queues=queues,
        concurrency=slots,
        listen_notify=False,
        install_signal_handlers=False,
        fetch_job_polling_interval=_POLL_SECONDS,
        abort_job_polling_interval=_NEVER,
        update_heartbeat_interval=HEARTBEAT_SECONDS,
        stalled_worker_timeout=STALLED_SECONDS,
        delete_jobs="always",
    )


def cron(task: Periodic) -> str:
    """Return the schedule as cron writes it, with the seconds last."""
    if task.hour is not None:
        return f"0 {task.hour} * * *"
    if task.every < 60:
        return f"* * * * * */{task.every}"
    return f"*/{task.every // 60} * * * *" if task.every < 3_600 else "0 * * * *"
