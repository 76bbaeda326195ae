"""Background work runs the same way in one process on SQLite and in several on PostgreSQL."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from gc import collect
from itertools import pairwise
from threading import Event
from time import monotonic

import pytest
from croniter import croniter
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from sqlalchemy import text

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tenants.work import queue, queue_postgres
from tenants.work.queue import Periodic, TenantTask, seconds_until
from tenants.work.queue_postgres import cron
from tests.webhooks import wait_until


class Chores:
    """Work for tenants, in steps that may be held up."""

    def __init__(self, **steps: int) -> None:
        self.left = Counter(steps)
        self.order: list[str] = []
        self.running: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()
        self.go_on = Event()
        self.go_on.set()
        self.hold_seconds = 10.0
        self.task = TenantTask("ingest", lambda: [one for one in self.left if self.left[one]], self._begin)

    def _begin(self, tenant_id: str) -> "Chore":
        self.running[tenant_id] += 1
        self.peak[tenant_id] = max(self.peak[tenant_id], self.running[tenant_id])
        return Chore(self, tenant_id)

    def defer(self) -> None:
        for tenant_id in self.left:
            with acting_as(Tenant(tenant_id, "tests")), database.writing() as session:
                queue.defer(session, "ingest")

    def done(self) -> bool:
        return not self.left.total() and not self.running.total()


class Chore:
    """The work of a tenant."""

    def __init__(self, chores: Chores, tenant_id: str) -> None:
        self._chores, self._tenant_id = chores, tenant_id

    def step(self) -> float | None:
        if not self._chores.go_on.wait(self._chores.hold_seconds):
            return None
        if not self._chores.left[self._tenant_id]:
            self._chores.running[self._tenant_id] -= 1
            return 0.0
        self._chores.left[self._tenant_id] -= 1
        self._chores.order.append(self._tenant_id)
        return None

    def pause(self) -> None:
        self._chores.running[self._tenant_id] -= 1


@pytest.fixture(autouse=True)
def _tenants(records: Settings) -> None:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)


@contextmanager
def running(settings: Settings, *periodic: Periodic, tasks: tuple[TenantTask, ...] = ()) -> Iterator[None]:
    """Run a process's background work until the block ends."""
    engine = queue.create(settings, tasks, periodic)
    engine.warm_up()
    try:
        yield
    finally:
        engine.close()


@pytest.fixture
def polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have both engines look for work ten times a second instead of once."""
    monkeypatch.setattr(queue, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(queue_postgres, "_POLL_SECONDS", 0.1)


def processes(settings: Settings) -> int:
    """Return how many processes there may be."""
    return 2 if database.is_shared(settings) else 1


@pytest.mark.usefixtures("polls_often")
def test_tenants_take_turns_and_each_has_one_task_at_a_time(records: Settings) -> None:
    chores = Chores(acme=30, globex=3)
    chores.go_on.clear()
    # Steps within a turn: after a longer one, the thread of the small tenant may wake up when the large one is done.
    chores.hold_seconds = 0.01
    chores.defer()
    chores.defer()
    with running(records, tasks=(chores.task,)):
        wait_until(lambda: chores.running.total() == 2)
        Event().wait(0.3)  # a few looks for work
        chores.go_on.set()
        wait_until(chores.done)
    assert chores.peak == {"acme": 1, "globex": 1}
    assert max(at for at, one in enumerate(chores.order) if one == "globex") < 10, "the small one does not wait"


def test_a_long_step_does_not_hold_up_other_tenants(records: Settings) -> None:
    long, short = Chores(acme=1), Chores()
    both = {"acme": long, "globex": short}
    task = TenantTask(
        "ingest", lambda: [*long.task.waiting(), *short.task.waiting()], lambda one: both[one].task.begin(one)
    )
    long.go_on.clear()
    long.defer()
    with running(records, tasks=(task,)):
        wait_until(lambda: long.running.total() == 1)
        short.left["globex"] = 3
        short.defer()
        wait_until(short.done)
        assert not long.order
        long.go_on.set()
        wait_until(long.done)


def test_new_work_is_started_by_an_idle_process(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite the process is woken: it would poll too late. On PostgreSQL it polls."""
    monkeypatch.setattr(queue, "_POLL_SECONDS", 600.0)
    chores = Chores()
    with running(records, tasks=(chores.task,)):
        Event().wait(0.5)
        chores.left["acme"] = 1
        chores.defer()
        wait_until(chores.done)


def test_what_is_left_at_the_end_is_done_by_the_next_process(records: Settings) -> None:
    chores = Chores(acme=1_000_000)
    chores.defer()
    with running(records, tasks=(chores.task,)):
        wait_until(lambda: len(chores.order) > 10)
    assert chores.running.total() == 0
    chores.left["acme"] = 3
    with running(records, tasks=(chores.task,)):
        wait_until(chores.done)


def test_several_processes_share_the_tenants(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    if not database.is_shared(records):
        pytest.skip("SQLite has one process")
    monkeypatch.setattr(queue_postgres, "SLOTS", 1)
    first, second = Chores(acme=1, globex=1), Chores(acme=1, globex=1)
    first.go_on.clear()
    first.defer()
    with running(records, tasks=(first.task,)):
        wait_until(lambda: first.running.total() == 1)
        with running(records, tasks=(second.task,)):
            wait_until(lambda: len(second.order) == 1)
            first.go_on.set()
            wait_until(lambda: len(first.order) == 1)
    assert {*first.order, *second.order} == {"acme", "globex"}


def test_a_task_makes_room_for_waiting_tenants(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    if not database.is_shared(records):
        pytest.skip("on SQLite there is room for every tenant")
    monkeypatch.setattr(queue_postgres, "SLOTS", 1)
    monkeypatch.setattr(queue_postgres, "SLICE_SECONDS", 0)
    chores = Chores(acme=1_000_000, globex=1)
    chores.defer()
    with running(records, tasks=(chores.task,)):
        wait_until(lambda: not chores.left["globex"])


def test_work_without_a_job_is_found(records: Settings) -> None:
    """An upgrade, a restored backup and a crash between two transactions leave such work."""
    chores = Chores(acme=2)
    with running(records, tasks=(chores.task,)):
        wait_until(chores.done)


def test_the_job_of_a_dead_process_is_taken_up(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    if not database.is_shared(records):
        pytest.skip("SQLite has one process")
    chores = Chores(acme=2)
    chores.defer()
    with database.across_tenants(write=True) as session:
        session.execute(text("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 minute')"))
        session.execute(
            text("UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM procrastinate_workers)")
        )
    chores.defer()  # such as by a repeated upload
    with running(records, tasks=(chores.task,)):
        wait_until(chores.done)
    with database.across_tenants() as session:
        assert session.scalar(text("SELECT count(*) FROM procrastinate_jobs WHERE queue_name = 'ingest'")) == 0


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_the_end_of_a_job_is_recorded_once_the_server_answers(
    records: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [ConnectorException()]
    finish = JobManager.finish_job

    async def finish_later(manager: JobManager, job: Job, status: Status, delete_job: bool) -> None:
        if refusals:
            raise refusals.pop()
        await finish(manager, job, status, delete_job)

    monkeypatch.setattr(JobManager, "finish_job", finish_later)
    chores = Chores(acme=1)
    chores.defer()
    with running(records, tasks=(chores.task,)):
        wait_until(lambda: chores.done() and not refusals)
        chores.left["acme"] = 1
        chores.defer()
        wait_until(chores.done)


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_a_job_that_another_process_took_up_ends_quietly(records: Settings, caplog: pytest.LogCaptureFixture) -> None:
    chores = Chores(acme=1)
    chores.go_on.clear()
    chores.defer()
    with running(records, tasks=(chores.task,)):
        wait_until(lambda: chores.running.total() == 1)
        with database.across_tenants(records, write=True) as session:
            session.execute(text("DELETE FROM procrastinate_jobs"))
        chores.go_on.set()
        wait_until(chores.done)
    collect()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_process_that_dies_while_it_recovers_work_keeps_nobody_from_it(records: Settings) -> None:
    if not database.is_shared(records):
        pytest.skip("SQLite has one process")
    with database.across_tenants(write=True) as session:
        session.execute(text("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 minute')"))
        session.execute(
            text(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, status, args, worker_id)"
                " SELECT queue, name, name, name, 'doing', '{\"timestamp\": 0}', (SELECT id FROM procrastinate_workers)"
                " FROM (VALUES ('recover', 'recover'), ('periodic', 'ticking')) AS jobs (queue, name)"
            )
        )
    chores, ticked = Chores(acme=2), Event()
    ticking = Periodic("ticking", lambda _: ticked.set(), every=1)
    with running(records, ticking, tasks=(chores.task,)):
        wait_until(chores.done)
        assert ticked.wait(30)


@pytest.mark.usefixtures("polls_often")
def test_periodic_tasks_run_again_and_again_in_one_process_at_a_time(records: Settings) -> None:
    runs: list[float] = []
    working: list[bool] = []

    def run(_: Event) -> None:
        assert not working
        working.append(True)
        runs.append(monotonic())
        Event().wait(0.1)
        working.clear()
        raise RuntimeError

    with running(records, Periodic("ticking", run, every=1)):
        if processes(records) > 1:
            with running(records, Periodic("ticking", run, every=1)):
                wait_until(lambda: len(runs) >= 3)
        wait_until(lambda: len(runs) >= 3)
    assert runs[2] - runs[0] > 1.0


def test_a_periodic_task_runs_at_start_when_woken_and_early(records: Settings) -> None:
    started, woken, hasty = list[float](), list[float](), list[float]()
    wake = Event()

    def recording(runs: list[float], again: float | None = None) -> Callable[[Event], float | None]:
        def run(_: Event) -> float | None:
            runs.append(monotonic())
            return again

        return run

    with running(
        records,
        Periodic("started", recording(started), every=3_600, at_start=True),
        Periodic("woken", recording(woken), every=3_600, wake=wake),
        Periodic("hasty", recording(hasty, 1.0), every=3_600, at_start=True),
    ):
        wait_until(lambda: len(started) == 1)
        before = len(woken)
        wake.set()
        wait_until(lambda: len(woken) > before)
        wait_until(lambda: len(hasty) >= 2)


def test_a_long_periodic_task_learns_of_the_end(records: Settings) -> None:
    begun = Event()

    def run(closing: Event) -> None:
        begun.set()
        assert closing.wait(30)

    with running(records, Periodic("long", run, every=3_600, at_start=True)):
        assert begun.wait(10)


def test_the_hour_strikes_once_a_day() -> None:
    for now, hour, hours in (
        ("2026-01-31T02:00:00", 3, 1.0),
        ("2026-01-31T03:00:00", 3, 24.0),
        ("2026-01-31T03:00:01", 3, 24 - 1 / 3600),
        ("2026-12-31T23:30:00", 0, 0.5),
    ):
        moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
        daily = Periodic("daily", lambda _: None, hour=hour)
        assert seconds_until(daily, partial(moment.astimezone, UTC)) == pytest.approx(hours * 3600)


def test_intervals_are_written_as_cron() -> None:
    for every in (1, 2, 30, 45, 60, 600, 3_600):
        times = croniter(cron(Periodic("regular", lambda _: None, every=every)), datetime(2026, 1, 1, tzinfo=UTC))
        runs = [times.get_next(float) for _ in range(120)]
        assert max(later - earlier for earlier, later in pairwise(runs)) == every
