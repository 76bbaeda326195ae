"""One tenant's jobs, in the order in which they came, a batch at a time."""

import logging
from collections.abc import Generator
from contextlib import closing
from contextvars import Context
from pathlib import Path
from typing import TypeAlias

from pipelines.ingest.jobs import report_json
from pipelines.ingest.rebuild import Rebuild, Rollback
from pipelines.ingest.run import Run
from pipelines.ingest.sources import Source, source_of
from pipelines.ingest.usecase import Ingest
from tenants import claims, fairness, generations, jobs
from tenants.context import Tenant, acting_as
from tenants.errors import CallerError, OporaError, TryAgain, trail
from tenants.jobs import Job, JobState

log = logging.getLogger("opora.jobs")

Work: TypeAlias = Generator[None, None, None]

_LATER_SECONDS = 1.0
"""Pause of a tenant for which another process or an operator is at work."""

_AFTER_FAULT_SECONDS = 5.0


class Shift:
    """Goes on from where it stopped. Each shift has a context of its own, in which its tenant acts."""

    def __init__(self, tenant_id: str, ingest: Ingest, watch_dir: Path | None) -> None:
        self.tenant_id = tenant_id
        self._context = Context()
        self._work = _worked_off(tenant_id, ingest, watch_dir)

    def step(self) -> float | None:
        """Do one batch. None: there is more to do. Otherwise this shift is over, and a number says for how long."""
        try:
            with fairness.interruptible():
                self._context.run(next, self._work)
        except StopIteration:
            return 0.0
        except TryAgain:
            return _LATER_SECONDS
        except Exception as error:
            log.error("a job of %r failed: %s", self.tenant_id, trail(error))
            return _AFTER_FAULT_SECONDS
        return None

    def leave(self) -> None:
        """Stop between two batches. The job in work waits for the next shift."""
        self._context.run(self._work.close)


def _worked_off(tenant_id: str, ingest: Ingest, watch_dir: Path | None) -> Work:
    with acting_as(Tenant(tenant_id, "jobs")), claims.ingesting(patience=0):
        while (job := jobs.begin()) is not None:
            try:
                yield from _run(job, ingest, watch_dir)
            except GeneratorExit:
                jobs.put_back(job.job_id)
                raise
            except Exception as error:
                _take_fault(job, error)


def _run(job: Job, ingest: Ingest, watch_dir: Path | None) -> Work:
    if job.kind in {"rebuild", "rollback"}:
        yield from _run_on_index(job, ingest.rebuild() if job.kind == "rebuild" else ingest.rollback())
        return
    source = source_of(job, watch_dir)
    run = source.run(ingest)
    with closing(run.steps(patience=0)) as steps:
        for now in steps:
            if jobs.note(job.job_id, now.as_json()):
                # Leaving the block stops the run, which is whole after each batch.
                _end(job, "cancelled", source, run)
                return
            yield
    _end(job, "done", source, run)


def _run_on_index(job: Job, work: Rebuild | Rollback) -> Work:
    if _switched_before(job):
        jobs.end(job.job_id, "done")
        return
    with closing(work.steps(patience=0)) as steps:
        for now in steps:
            if jobs.note(job.job_id, now.as_json()):
                jobs.end(job.job_id, "cancelled")
                return
            yield
    jobs.end(job.job_id, "done", report=work.report.as_json())
    log.info("job %s done", job.job_id)


def _switched_before(job: Job) -> bool:
    """Whether an attempt before this one was cut off when all but the job's end was done. Nothing is switched twice."""
    if job.attempts < 2:
        return False
    if job.kind == "rollback":
        return generations.in_state("kept") is None
    now = generations.in_state("in_force")
    return now is not None and now.created_at > job.created_at


def _end(job: Job, state: JobState, source: Source, run: Run) -> None:
    source.note(run, whole=state == "done")
    jobs.end(job.job_id, state, report=report_json(run.report))
    source.tidy()
    log.info("job %s %s", job.job_id, state)


def _take_fault(job: Job, error: Exception) -> None:
    """A fault of the caller's ends the job. After any other it is begun again later, though not for ever."""
    known = _known(error)
    if isinstance(known, CallerError):
        jobs.end(job.job_id, "failed", error=known.code)
        return
    if isinstance(known, TryAgain):
        jobs.put_back(job.job_id)
        raise known
    jobs.fault(job.job_id)
    raise error


def _known(error: BaseException | None) -> OporaError | None:
    """Our own error behind one of the pipeline's."""
    while error is not None and not isinstance(error, OporaError):
        error = error.__cause__
    return error
