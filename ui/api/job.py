"""`/jobs`: status and live progress of accepted files, and cancelling."""

from asyncio import sleep, to_thread
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from pipelines import shutdown
from pipelines.in_progress import counted
from pipelines.ingest.jobs import add_site, as_json, cancel
from pipelines.ingest.receiving import receive
from pipelines.routes import OpenRouter, opens
from pipelines.sse import described, json_event, last_number
from settings import Settings
from tenants.core.context import current
from tenants.core.errors import RateLimited
from tenants.work import jobs
from tenants.work.jobs import Job, JobState

MOST_FOLLOWED = 50
"""Maximum number of open job streams per tenant: each polls the database twice a second."""

_POLL_SECONDS = 0.5

_JOB = "/jobs/{job_id}"
_EVENTS = "/jobs/{job_id}/events"
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": {"type": "object", "description": "One part for each file."}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    },
    "parameters": [
        {
            "name": "name",
            "in": "query",
            "description": "Name of the one file that is the body.",
            "schema": {"type": "string"},
        }
    ],
}


class JobsQuery(BaseModel, extra="forbid", frozen=True):
    """Filter for listing jobs."""

    state: JobState | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    before: Annotated[str, Field(max_length=32, description="Only jobs older than this one.")] | None = None


class SiteRequest(BaseModel, extra="forbid", frozen=True):
    """Website to load: a page and the pages below its folder that it links to, or the pages of a sitemap."""

    url: Annotated[str, Field(min_length=1, max_length=2_000)]


def router(settings: Settings) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=10_000, tags=["jobs"])
    endpoints.add_api_route(
        "/documents",
        opens(limit=settings.max_files_bytes)(receive),
        methods=["POST"],
        response_class=Response,
        status_code=202,
        openapi_extra=_FILE_BODY,
    )

    @endpoints.post("/documents/site", status_code=202)
    def load_site(body: SiteRequest) -> Response:
        """Load pages of a website."""
        return JSONResponse(as_json(add_site(body.url)), 202)

    @endpoints.get("/jobs")
    def list_jobs(query: Annotated[JobsQuery, Query()]) -> Response:
        """List the tenant's jobs, newest first."""
        page = jobs.latest(state=query.state, limit=query.limit, before=query.before)
        return JSONResponse({"jobs": [as_json(job) for job in page]})

    @endpoints.get(_JOB)
    def show_job(job_id: str) -> Response:
        """Return one job."""
        return JSONResponse(as_json(jobs.get(job_id)))

    @endpoints.delete(_JOB)
    def cancel_job(job_id: str) -> Response:
        """Cancel a job. Documents ingested so far are kept."""
        return JSONResponse(as_json(cancel(job_id)))

    followers: Counter[str] = Counter()

    async def requested(job_id: str) -> AsyncIterator[Job]:
        tenant_id = current().tenant_id
        if followers[tenant_id] >= MOST_FOLLOWED:
            raise RateLimited(jobs.RETRY_SECONDS)
        with counted(followers, tenant_id):
            yield await to_thread(jobs.get, job_id)

    @endpoints.get(
        _EVENTS, response_class=EventSourceResponse, responses=described("The job as it goes on.", ("progress", "done"))
    )
    @opens(desk=True)
    async def follow_job(
        job: Annotated[Job, Depends(requested)],
        last_event_id: Annotated[str, Header(description="Resume after this event.")] = "",
    ) -> AsyncIterable[ServerSentEvent]:
        """Stream a job's progress: an event with the full state for each change, the last one at the end.

        Event ids are the job's revisions, so a reconnecting client misses only superseded states.
        """
        revision = last_number(last_event_id)
        while not job.finished:
            if job.revision > revision:
                revision = job.revision
                yield json_event("progress", as_json(job), job.revision)
            await sleep(_POLL_SECONDS)
            if shutdown.requested():
                # The client reconnects to the next process with the id of its last event.
                return
            job = await to_thread(jobs.get, job.job_id)
        yield json_event("done", as_json(job), job.revision)

    return endpoints
