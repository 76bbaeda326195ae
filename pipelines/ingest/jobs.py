"""Jobs as those who wait for them see them."""

from typing import Any

from pydantic_core import to_jsonable_python

from components.ingest.fetch import canonical
from pipelines.ingest.report import IngestReport
from tenants.work import jobs, uploads
from tenants.work.jobs import Job

MAX_ERRORS = 1_000
"""Maximum number of refusals listed in a job's report; `refused` counts all."""


def as_json(job: Job) -> dict[str, Any]:
    """Return the job for a program. `error` is the stable code of what made it fail."""
    shown: dict[str, Any] = to_jsonable_python(job, exclude={"subject", "revision"})
    return shown


def report_json(report: IngestReport) -> dict[str, object]:
    content = report.as_json()
    return {**content, "errors": content["errors"][:MAX_ERRORS], "refused": len(content["errors"])}


def add_site(url: str) -> Job:
    """Accept a website to be loaded. Raises `Invalid` (`url_invalid`) and `QueueFull`."""
    return jobs.add(jobs.new_id(), "site", [canonical(url.strip())])


def cancel(job_id: str) -> Job:
    """End a job of the tenant in context. What a job in progress has ingested stays. Raises `NotFound`."""
    job = jobs.cancel(job_id)
    if job.finished:
        uploads.remove(job_id)
    return job
