"""Jobs as those who wait for them see them."""

from typing import TypedDict

from components.ingest.fetch import canonical
from pipelines.ingest.report import IngestReport
from tenants.work import jobs, uploads
from tenants.work.jobs import Job

MAX_ERRORS = 1_000
"""Maximum number of refusals listed in a job's report; `refused` counts all."""


class JobJson(TypedDict):
    """A `Job` for a program. `error` is the stable code of what made it fail."""

    job_id: str
    kind: str
    state: str
    cancelling: bool
    files: list[str]
    gone: list[str]
    size: int
    progress: dict[str, object]
    report: dict[str, object] | None
    error: str | None
    attempts: int
    created_at: str
    started_at: str | None
    finished_at: str | None


def as_json(job: Job) -> JobJson:
    """Return the job for a program."""
    return JobJson(
        job_id=job.job_id,
        kind=job.kind,
        state=job.state,
        cancelling=job.cancelling,
        files=list(job.files),
        gone=list(job.gone),
        size=job.size,
        progress=dict(job.progress),
        report=None if job.report is None else dict(job.report),
        error=job.error,
        attempts=job.attempts,
        created_at=f"{job.created_at:%FT%TZ}",
        started_at=f"{job.started_at:%FT%TZ}" if job.started_at else None,
        finished_at=f"{job.finished_at:%FT%TZ}" if job.finished_at else None,
    )


def report_json(report: IngestReport) -> dict[str, object]:
    """Return a run's report as a job keeps it."""
    content = report.as_json()
    return {**content, "errors": content["errors"][:MAX_ERRORS], "refused": len(content["errors"])}


def add_site(url: str) -> Job:
    """Accept a website to be loaded. Raises `Invalid` (`url_invalid`) and `QueueFull`."""
    return jobs.add(jobs.new_id(), "site", [canonical(url.strip())])


def cancel(job_id: str) -> Job:
    """End a job of the tenant in context. What a job in work has ingested stays. Raises `NotFound`."""
    job = jobs.cancel(job_id)
    if job.finished:
        uploads.remove(job_id)
    return job
