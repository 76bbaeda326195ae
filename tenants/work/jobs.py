"""Jobs: files accepted for ingestion, and their results.

A job is acknowledged once its files and then its row are on disk, and its row is the only record of it. So a crash
requires no reconstruction: queued and running jobs are processed in order of arrival; ingesting the same files again
changes nothing. A job during which the process ended several times without progress may be the cause, so it waits
longer each time, and its tenant's other jobs with it; it is never given up. A job that fails several times with an
internal error is given up and reports that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from time import time_ns
from typing import Literal, TypeAlias

from sqlalchemy import func, select

from settings import get_settings
from tenants.core import context
from tenants.core.errors import Busy, RateLimited
from tenants.storage import database
from tenants.storage.mapping import record_of, records
from tenants.storage.tenant_session import TenantSession
from tenants.work import locks, queue
from tenants.work.tables import JobRow

JobState: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]
JobKind: TypeAlias = Literal["upload", "site", "watch", "rebuild", "rollback"]
FINISHED: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})

RETENTION = timedelta(days=7)
"""Retention of finished jobs. Their files are removed as soon as they end."""

MAX_FAULTS = 5
_HASTY_ATTEMPTS = 5
_MAX_WAIT = timedelta(hours=1)
RETRY_SECONDS = 30
"""When a tenant with a full queue may try again: a waiting job of some articles is done by then."""

OPEN: tuple[JobState, ...] = ("queued", "running")
"""A job that has not ended."""


class QueueFull(RateLimited):
    """The tenant has reached its limit of queued jobs or bytes."""

    code = "jobs_waiting"


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    :param files: paths to ingest, relative to the folder of the upload or to the tenant's watched folder; the
        address of a website.
    :param gone: paths of watched files that were deleted; their documents will be removed.
    :param size: bytes of the uploaded files.
    :param progress: the counts of an ingest run so far.
    :param report: the result of an ended job, in the format of `POST /ingest/run`.
    :param error: the stable code of the failure.
    :param revision: increases with every change of the job.
    :param attempts: how often it was started since its last progress.
    :param cancelling: cancellation was requested and takes effect after the current batch.
    """

    job_id: str
    subject: str
    kind: JobKind
    state: JobState
    files: tuple[str, ...]
    gone: tuple[str, ...]
    size: int
    progress: Mapping[str, object]
    report: Mapping[str, object] | None
    error: str | None
    revision: int
    attempts: int
    cancelling: bool
    created_at: datetime
    started_at: datetime | None = field(default=None)
    finished_at: datetime | None = field(default=None)

    @property
    def finished(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINISHED


def new_id() -> str:
    """Return a random id that sorts by creation time."""
    return f"{time_ns():016x}{token_hex(8)}"


def check_capacity(arriving: int = 0, size: int = 0) -> None:
    """Raise `QueueFull` if the tenant in context cannot queue another job.

    :param arriving: its jobs whose files are still being uploaded, of `size` bytes so far.
    """
    with database.reading() as session:
        _check_capacity(session, arriving, size)


def add(job_id: str, kind: JobKind, files: Sequence[str], *, gone: Sequence[str] = (), size: int = 0) -> Job:
    """Accept a job whose files are in place. Raises `QueueFull`."""
    caller = context.current()
    row = JobRow(
        job_id=job_id,
        subject=caller.subject,
        kind=kind,
        files=list(files),
        gone=list(gone),
        size=size,
        report=None,
        created_at=datetime.now(UTC),
    )
    with database.writing() as session:
        _check_capacity(session)
        session.add(row)
        queue.defer(session, "ingest")
    return record_of(Job, row)


def get(job_id: str) -> Job:
    """Return the tenant's job. Raises `NotFound`."""
    with database.reading() as session:
        return record_of(Job, session.existing(JobRow, job_id))


def age(job_id: str) -> timedelta:
    """Return the time since an id was made by `new_id`; any other text is older than all of them."""
    try:
        return timedelta(microseconds=(time_ns() - int(job_id[:16], 16)) // 1_000)
    except ValueError:
        return timedelta.max


def state_of(job_id: str) -> str:
    """Return the state of the tenant's job; empty if there is no such job."""
    with database.reading() as session:
        row = session.find(JobRow, job_id)
        return row.state if row is not None else ""


def latest(*, state: JobState | None = None, limit: int = 100, before: str | None = None) -> tuple[Job, ...]:
    """Return the tenant's newest jobs, newest first.

    :param before: only jobs older than this one.
    """
    query = select(JobRow)
    if state is not None:
        query = query.where(JobRow.state == state)
    if before is not None:
        query = query.where(JobRow.job_id < before)
    return records(Job, query.order_by(JobRow.job_id.desc()).limit(limit))


def open_jobs() -> tuple[Job, ...]:
    """Return the tenant's unfinished jobs, in processing order."""
    return records(Job, select(JobRow).where(JobRow.state.in_(OPEN)).order_by(JobRow.job_id))


def cancel(job_id: str) -> Job:
    """Cancel a job: a waiting one at once, a running one after its current batch, whose documents stay.

    An ended job is not changed. Raises `NotFound`.
    """
    with database.writing() as session:
        row = session.existing(JobRow, job_id, lock=True)
        if row.state == "queued":
            _end(row, "cancelled")
        elif row.state == "running" and not row.cancelling:
            row.cancelling = True
            row.revision += 1
        return record_of(Job, row)


def tenants_waiting() -> tuple[str, ...]:
    """Return the tenants with unfinished jobs, the longest waiting one first."""
    query = select(JobRow.tenant_id, func.min(JobRow.job_id)).where(JobRow.state.in_(OPEN)).group_by(JobRow.tenant_id)
    with database.across_tenants() as session:
        return tuple(tenant_id for tenant_id, _ in sorted(session.execute(query), key=lambda row: str(row[1])))


def begin() -> Job | None:
    """Start the tenant's next job, or an interrupted one. Returns None if no job can start now."""
    query = select(JobRow).where(JobRow.state.in_(OPEN))
    process = locks.this_process()
    with database.writing() as session:
        # Locked, so that a concurrent cancellation sees the job started, or the job is not started.
        for row in session.scalars(query.order_by(JobRow.job_id).with_for_update(key_share=True)):
            if row.cancelling:
                _end(row, "cancelled")
                continue
            now = datetime.now(UTC)
            if row.begun_at is not None and now < row.begun_at + _wait(row.attempts):
                return None
            row.state, row.holder = "running", process
            row.attempts += 1
            row.revision += 1
            row.begun_at = now
            row.started_at = row.started_at or now
            return record_of(Job, row)
    return None


def note(job_id: str, progress: Mapping[str, object]) -> bool:
    """Store the progress of a running job. Returns whether its cancellation was requested."""
    with database.writing() as session:
        row = _own_row(session, job_id)
        documents = progress.get("documents", 0)
        if isinstance(documents, int) and documents > row.farthest:
            row.farthest, row.attempts = documents, 1
        row.progress = dict(progress)
        row.revision += 1
        return row.cancelling


def requeue(job_id: str) -> None:
    """Put a running job back in the queue, such as for the next start; this does not count as an attempt.

    Does nothing if another process has started it since.
    """
    with database.writing() as session:
        row = session.existing(JobRow, job_id, lock=True)
        if row.holder in ("", locks.this_process()):
            row.state = "queued"
            row.attempts -= 1
            row.revision += 1


def fault(job_id: str) -> None:
    """Record an internal error of a running job: queue it for another attempt, or end it after `MAX_FAULTS`."""
    with database.writing() as session:
        row = _own_row(session, job_id)
        row.faults += 1
        row.revision += 1
        row.state = "queued"
        if row.faults >= MAX_FAULTS:
            _end(row, "failed", error="job_given_up")


def end(job_id: str, state: JobState, *, report: Mapping[str, object] | None = None, error: str | None = None) -> None:
    """Close a running job."""
    with database.writing() as session:
        _end(_own_row(session, job_id), state, report=report, error=error)


def _end(row: JobRow, state: JobState, *, report: Mapping[str, object] | None = None, error: str | None = None) -> None:
    row.state = state
    row.report = None if report is None else dict(report)
    row.error = error
    row.finished_at = datetime.now(UTC)
    row.revision += 1


def _wait(attempts: int) -> timedelta:
    """Return the back-off of a job after this many attempts without progress."""
    if attempts < _HASTY_ATTEMPTS:
        return timedelta(0)
    return min(timedelta(minutes=2 ** (attempts - _HASTY_ATTEMPTS)), _MAX_WAIT)


def _check_capacity(session: TenantSession, arriving: int = 0, arriving_size: int = 0) -> None:
    waiting = select(func.count(), func.coalesce(func.sum(JobRow.size), 0)).where(JobRow.state.in_(OPEN))
    number, size = session.execute(waiting).one()
    settings = get_settings()
    if number + arriving >= settings.queued_jobs or size + arriving_size >= settings.queued_bytes:
        raise QueueFull(RETRY_SECONDS)


def _own_row(session: TenantSession, job_id: str) -> JobRow:
    """Return the row of a job that this process is running.

    Raises `Busy` with the code `ingest_busy` when another process has begun it since: this one was thought to be gone.
    """
    row = session.existing(JobRow, job_id, lock=True)
    if row.holder not in ("", locks.this_process()):
        raise Busy("ingest_busy")
    return row
