"""The jobs of one tenant, in order of arrival, a batch at a time."""

import logging
from collections.abc import Generator
from contextlib import closing
from contextvars import Context
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from pipelines.ingest.folder import Changes, FolderChange
from pipelines.ingest.jobs import report_json
from pipelines.ingest.rebuild import IndexChange
from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, CallerError, NotFound, TryAgain, own_error, trail
from tenants.knowledge import generations, watched
from tenants.work import jobs, locks, uploads
from tenants.work.jobs import Job, JobState

log = logging.getLogger("opora.jobs")

Work: TypeAlias = Generator[None, None, None]

_LATER_SECONDS = 1.0
"""Pause for a tenant whose data another process or an operator is changing."""

_AFTER_FAULT_SECONDS = 5.0
_LOOK_SECONDS = 1.0
"""Longest time until a cancellation or a waiting change is noticed while nothing is read or written."""


class TenantJobs:
    """Works through the jobs of one tenant, in a separate context with the tenant set."""

    def __init__(self, tenant_id: str, ingest: Ingest, watch_dir: Path | None) -> None:
        self.tenant_id = tenant_id
        self._context = Context()
        self._work = _process_jobs(tenant_id, ingest, watch_dir)

    def step(self) -> float | None:
        """Do one batch. None: there is more to do; otherwise the seconds to wait before starting again."""
        try:
            self._context.run(next, self._work)
        except StopIteration:
            return 0.0
        except TryAgain:
            return _LATER_SECONDS
        except Exception as error:
            log.error("a job of %r failed: %s", self.tenant_id, trail(error))
            return _AFTER_FAULT_SECONDS
        return None

    def pause(self) -> None:
        """Stop between two batches. The running job is resumed later."""
        self._context.run(self._work.close)


def _process_jobs(tenant_id: str, ingest: Ingest, watch_dir: Path | None) -> Work:
    with acting_as(Tenant(tenant_id, "jobs")), locks.ingesting(patience=0):
        while (job := jobs.begin()) is not None:
            try:
                run = yield from _run(job, ingest, watch_dir)
            except GeneratorExit:
                jobs.requeue(job.job_id)
                raise
            except Exception as error:
                _handle_error(job, error)
            else:
                if run is not None:
                    yield from run.find_contradictions()


def _run(job: Job, ingest: Ingest, watch_dir: Path | None) -> Generator[None, None, Run | None]:
    if job.kind in {"rebuild", "rollback"}:
        yield from _run_on_index(job, ingest.rebuild() if job.kind == "rebuild" else ingest.rollback())
        return None
    change = _folder_change(job, watch_dir) if job.kind == "watch" else None
    run = change.run(ingest) if change else _run_over_files(job, ingest)
    noted, looks_at = None, 0.0
    with closing(run.steps(patience=0)) as steps:
        for now in steps:
            if now != noted or monotonic() >= looks_at:
                noted, looks_at = now, monotonic() + _LOOK_SECONDS
                if jobs.note(job.job_id, asdict(now)):
                    # Leaving the block stops the run, which is consistent after each part.
                    _end(job, "cancelled", run, change)
                    return None
                if locks.is_ingesting_wanted():
                    # The rest follows: what is written already is found unchanged.
                    raise Busy("ingest_busy")
            yield
    _end(job, "done", run, change)
    return run


def _folder_change(job: Job, watch_dir: Path | None) -> FolderChange:
    if watch_dir is None:
        # The setting was taken away while jobs waited.
        raise NotFound("folder_missing")
    folder = watch_dir / context.current().tenant_id
    return FolderChange(folder, Changes(job.files, job.gone), watched.all())


def _run_over_files(job: Job, ingest: Ingest) -> Run:
    if job.kind == "site":
        return ingest.start_site(job.files[0])
    return ingest.start_files(uploads.fetched(job.job_id), job.files)


def _run_on_index(job: Job, work: IndexChange) -> Work:
    if _switched_before(job):
        jobs.end(job.job_id, "done")
        return
    with closing(work.steps(patience=0)) as steps:
        for now in steps:
            if jobs.note(job.job_id, asdict(now)):
                jobs.end(job.job_id, "cancelled")
                return
            yield
    jobs.end(job.job_id, "done", report=work.report.as_json())
    log.info("job %s done", job.job_id)


def _switched_before(job: Job) -> bool:
    """Return whether an interrupted attempt had already switched generations and only lacked the end of the job."""
    if job.attempts < 2:
        return False
    if job.kind == "rollback":
        return generations.in_state("kept") is None
    now = generations.in_state("in_force")
    return now is not None and now.created_at > job.created_at


def _end(job: Job, state: JobState, run: Run, change: FolderChange | None) -> None:
    if change is not None:
        change.save(run, completed=state == "done")
    jobs.end(job.job_id, state, report=report_json(run.report))
    if job.kind == "upload":
        uploads.remove(job.job_id)
    log.info("job %s %s", job.job_id, state)


def _handle_error(job: Job, error: Exception) -> None:
    """Fail the job after a caller error. Retry it later after any other error, a limited number of times."""
    cause = own_error(error)
    if isinstance(cause, CallerError):
        jobs.end(job.job_id, "failed", error=cause.code)
        return
    if isinstance(cause, TryAgain):
        jobs.requeue(job.job_id)
        raise cause
    jobs.fault(job.job_id)
    raise error
