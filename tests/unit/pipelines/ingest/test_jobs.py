"""Jobs run in turn, survive crashes of the process, and belong to a tenant."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from components.ingest import comparison, formats
from components.ingest.document import Revision
from components.ingest.formats.parsed import Parsed
from components.ingest.write import ChunkWriter, Prepared, WriteCounts
from components.turn import Passage
from pipelines import background
from pipelines.ingest import run
from pipelines.ingest.jobs import cancel
from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.core.points import Hit
from tenants.index.protocol import Collection
from tenants.knowledge import documents
from tenants.privacy import retention
from tenants.storage import files
from tenants.work import jobs, locks, uploads
from tenants.work.jobs import Job, QueueFull
from tenants.work.queue import LocalQueue, TenantTask
from tenants.work.uploads import Upload
from tests.unit.pipelines.ingest.stored import check_consistent
from tests.webhooks import wait_until


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch, tenant: Tenant) -> None:
    monkeypatch.setattr(run, "_BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(run, "_POLL_SECONDS", 60)  # a batch is one turn, however slow the machine


def upload(*names: str) -> Job:
    """Add a job with small articles of these names."""
    job_id = jobs.new_id()
    arriving = Upload(job_id)
    for name in names:
        file = arriving.file(name)
        file.write(f"# {name}\n\nПроверьте шланг {name}.".encode())
        file.close()
    arriving.settle()
    job = jobs.add(job_id, "upload", arriving.names, size=arriving.size)
    arriving.close(keep=True)
    return job


@contextmanager
def working() -> Iterator[None]:
    """Run the jobs of all tenants until the block ends."""
    ingest = Ingest()
    queue = LocalQueue([TenantTask("ingest", jobs.tenants_waiting, lambda one: TenantJobs(one, ingest, None))], [])
    queue.warm_up()
    try:
        yield
    finally:
        queue.close()


def work(until: Callable[[], bool]) -> None:
    with working():
        wait_until(until)


def ended(*waited: Job) -> Callable[[], bool]:
    return lambda: all(jobs.get(job.job_id).finished for job in waited)


def ids() -> list[str]:
    return [record.doc_id for record in documents.all()]


def tenant_jobs(ingest: Ingest) -> TenantJobs:
    return TenantJobs("acme", ingest, None)


def rest(working: TenantJobs) -> float:
    """Take the steps that are left. Returns the pause after them."""
    while (pause := working.step()) is None:
        pass
    return pause


def test_a_job_is_done_and_its_files_are_removed() -> None:
    job = upload("a.md", "b/c.md", "d.exe")
    work(ended(job))
    done = jobs.get(job.job_id)
    assert (done.state, done.attempts, done.error) == ("done", 1, None)
    assert done.report is not None
    assert (done.report["added"], done.report["refused"]) == (2, 1)
    assert done.progress["documents"] == 3
    assert done.revision > job.revision
    assert ids() == ["a.md", "b/c.md"]
    assert not files.names(files.path("uploads", job.job_id))
    check_consistent()


def test_tenants_take_turns_batch_by_batch(monkeypatch: pytest.MonkeyPatch, tenant: Tenant) -> None:
    bulk = upload(*(f"{at}.md" for at in range(4)))
    Registry().add("globex")
    with acting_as(Tenant("globex", "tests")):
        small = upload("x.md", "y.md")
    turns: list[str] = []
    step = TenantJobs.step

    def logged(shift: TenantJobs) -> float | None:
        turns.append(shift.tenant_id)
        return step(shift)

    monkeypatch.setattr(TenantJobs, "step", logged)
    work(ended(bulk))
    assert turns[:5] == ["acme", "globex", "acme", "globex", "acme"]
    assert len(ids()) == 4
    with acting_as(Tenant("globex", "tests")):
        assert jobs.get(small.job_id).state == "done"
        assert ids() == ["x.md", "y.md"]


def test_a_step_writes_and_compares_a_few_passages(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name, number in ((run, "_BATCH_DOCUMENTS", 64), (run, "_WRITTEN_CHUNKS", 3), (comparison, "STEP", 2)):
        monkeypatch.setattr(place, name, number)
    write, nearest = ChunkWriter.run, comparison._nearest
    steps: list[Counter[str]] = []

    def counted_write(writer: ChunkWriter, revisions: list[Revision], **others: Prepared) -> dict[str, WriteCounts]:
        steps[-1]["written"] += sum(len(revision.chunks) for revision in revisions)
        return write(writer, revisions, **others)

    def counted_nearest(collection: Collection, hit: Hit, passage: Passage) -> Iterator[Passage]:
        steps[-1]["compared"] += 1
        return nearest(collection, hit, passage)

    monkeypatch.setattr(ChunkWriter, "run", counted_write)
    monkeypatch.setattr(comparison, "_nearest", counted_nearest)
    upload(*(f"{at}.md" for at in range(9)))
    working, pause = tenant_jobs(ingest), None
    while pause is None:
        steps.append(Counter())
        pause = working.step()
    assert len(ids()) == 9
    assert [max(step[kind] for step in steps) for kind in ("written", "compared")] == [3, 2]
    assert [sum(step[kind] for step in steps) for kind in ("written", "compared")] == [9, 9]


def test_a_slow_file_does_not_delay_other_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, read = Event(), formats.read

    def slow(name: str, data: bytes) -> Parsed:
        assert "slow" not in name or goes_on.wait(30)
        return read(name, data)

    monkeypatch.setattr(formats, "read", slow)
    monkeypatch.setattr(run, "_POLL_SECONDS", 0.001)
    held = upload("a.md", "slow.md")
    Registry().add("globex")
    with acting_as(Tenant("globex", "tests")):
        small = upload("x.md", "y.md")
    with working():
        with acting_as(Tenant("globex", "tests")):
            wait_until(ended(small))
        assert not jobs.get(held.job_id).finished
        goes_on.set()
        wait_until(ended(held))
    assert ids() == ["a.md", "slow.md"]


def test_a_tenants_jobs_keep_their_order() -> None:
    first, second = upload("a.md"), upload("a.md", "b.md")
    work(ended(first, second))
    starts = [jobs.get(job.job_id).started_at for job in (first, second)]
    assert starts[0] is not None
    assert starts[1] is not None
    assert starts[0] < starts[1]
    report = jobs.get(second.job_id).report
    assert report is not None
    assert (report["added"], report["unchanged"]) == (1, 1)


def test_an_interrupted_job_is_restarted() -> None:
    job = upload("a.md", "b.md")
    # A killed process leaves a row in state `running`.
    assert jobs.begin() is not None
    work(ended(job))
    assert jobs.get(job.job_id).state == "done"
    assert ids() == ["a.md", "b.md"]


def test_a_job_that_crashes_the_process_backs_off_and_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = upload("a.md", "b.md")
    starts = [jobs.begin() for _ in range(50)]
    assert all(starts[:5])
    assert not any(starts[5:])
    assert jobs.get(job.job_id).state == "running"
    monkeypatch.setattr(jobs, "_MAX_WAIT", timedelta(0))
    assert jobs.begin() is not None
    work(ended(job))
    assert jobs.get(job.job_id).state == "done"


def test_a_job_that_makes_progress_does_not_back_off() -> None:
    job = upload(*(f"{at}.md" for at in range(9)))
    for met in range(1, 9):
        assert jobs.begin() is not None
        jobs.note(job.job_id, {"documents": met})
    assert jobs.begin() is not None


def test_a_clean_stop_requeues_the_job(ingest: Ingest) -> None:
    job = upload("a.md", "b.md")
    stopped = tenant_jobs(ingest)
    assert stopped.step() is None
    stopped.pause()
    assert (jobs.get(job.job_id).state, jobs.get(job.job_id).attempts) == ("queued", 0)
    check_consistent()
    work(ended(job))
    assert ids() == ["a.md", "b.md"]


def test_an_import_makes_room_for_a_change_in_another_process(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    job = upload("a.md", "b.md", "c.md")
    with monkeypatch.context() as patched:
        wanted = iter([False, True])
        patched.setattr(locks, "is_ingesting_wanted", lambda: next(wanted))
        importing = tenant_jobs(ingest)
        assert importing.step() is None
        assert importing.step() == 1.0
    assert (jobs.get(job.job_id).state, jobs.get(job.job_id).attempts) == ("queued", 0)
    with locks.ingesting(patience=0):
        check_consistent()
    work(ended(job))
    assert ids() == ["a.md", "b.md", "c.md"]


def test_cancelling_stops_after_the_batch_in_work(ingest: Ingest) -> None:
    job, next_one = upload("a.md", "b.md", "c.md"), upload("d.md")
    working = tenant_jobs(ingest)
    assert working.step() is None
    assert cancel(job.job_id).cancelling
    assert working.step() is None
    stopped = jobs.get(job.job_id)
    assert stopped.state == "cancelled"
    assert stopped.report is not None
    assert stopped.report["added"] == 2
    assert not files.names(files.path("uploads", job.job_id))
    assert rest(working) == 0.0
    assert ids() == ["a.md", "b.md", "d.md"]
    assert jobs.get(next_one.job_id).state == "done"
    check_consistent()


def test_cancelling_a_waiting_job_ends_it_at_once() -> None:
    job = upload("a.md")
    assert cancel(job.job_id).state == "cancelled"
    assert not files.names(files.path("uploads", job.job_id))
    assert cancel(job.job_id).state == "cancelled"
    assert jobs.tenants_waiting() == ()
    assert not ids()


def test_files_that_are_not_there_fail_the_job_and_not_the_next_one(ingest: Ingest) -> None:
    job, next_one = upload("a.md"), upload("b.md")
    uploads.remove(job.job_id)
    work(ended(next_one))
    assert (jobs.get(job.job_id).state, jobs.get(job.job_id).error) == ("failed", "upload_missing")
    assert ids() == ["b.md"]


def test_an_internal_fault_is_retried_a_limited_number_of_times(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload("a.md")

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Ingest, "start_files", broken)
        for _ in range(jobs.MAX_FAULTS):
            assert jobs.get(job.job_id).state == "queued"
            pause = tenant_jobs(ingest).step()
            assert pause is not None
            assert pause > 1
    assert (jobs.get(job.job_id).state, jobs.get(job.job_id).error) == ("failed", "job_given_up")


def test_a_tenant_ingested_by_another_process_waits(ingest: Ingest) -> None:
    job = upload("a.md")
    with locks.ingesting():
        assert tenant_jobs(ingest).step() == 1.0
    assert (jobs.get(job.job_id).state, jobs.get(job.job_id).attempts) == ("queued", 0)
    assert rest(tenant_jobs(ingest)) == 0.0


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_QUEUED_JOBS", "2")
    get_settings.cache_clear()
    first, _ = upload("a.md"), upload("b.md")
    with pytest.raises(QueueFull):
        upload("c.md")
    with pytest.raises(QueueFull):
        jobs.check_capacity()
    cancel(first.job_id)
    jobs.check_capacity()
    monkeypatch.setenv("OPORA_QUEUED_BYTES", "1000")
    get_settings.cache_clear()
    jobs.add(jobs.new_id(), "upload", ["big.pdf"], size=1_000)
    with pytest.raises(QueueFull):
        jobs.check_capacity()
    Registry().add("globex")
    with acting_as(Tenant("globex", "tests")):
        jobs.check_capacity()


def test_finished_jobs_are_forgotten_in_time_and_others_never() -> None:
    over, waiting = upload("a.md"), upload("b.md")
    cancel(over.job_id)
    now = datetime.now(UTC)
    retention.prune(now + jobs.RETENTION - timedelta(minutes=1))
    assert jobs.get(over.job_id).finished
    retention.prune(now + jobs.RETENTION + timedelta(minutes=1))
    with pytest.raises(NotFound):
        jobs.get(over.job_id)
    assert jobs.get(waiting.job_id).state == "queued"


def test_files_that_no_job_owns_are_found_and_those_still_arriving_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    open_job, young, arriving = upload("a.md"), jobs.new_id(), dict[str, Upload]()
    for job_id in ("arriving", "dead", young):
        arriving[job_id] = Upload(job_id)
        arriving[job_id].file("a.md").close()
    arriving["dead"].close(keep=True)
    arriving[young].close(keep=True)
    assert uploads.abandoned() == ("dead",)
    cancel(open_job.job_id)
    arriving["arriving"].close(keep=False)
    assert uploads.abandoned() == ("dead",)
    # It could be arriving in another process.
    monkeypatch.setattr(uploads, "ABANDONED", timedelta(0))
    assert uploads.abandoned() == (young, "dead")
    background.tidy(Event())
    assert uploads.abandoned() == ()
