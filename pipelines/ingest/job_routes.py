"""`/jobs`: what became of accepted files, at a glance or as it happens, and how to stop it."""

import json
from asyncio import sleep, to_thread
from collections.abc import AsyncIterator
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from pipelines import shutdown
from pipelines.gate import Route
from pipelines.ingest.jobs import as_json, cancel
from pipelines.ingest.receiving import receive
from settings import Settings
from tenants import jobs
from tenants.jobs import Job, JobState

HEARTBEAT_SECONDS = 15.0
_LOOK_SECONDS = 0.5

_FILES = "/documents"
_LIST = "/jobs"
_ONE = "/jobs/{job_id}"
_EVENTS = "/jobs/{job_id}/events"


class JobsQuery(BaseModel):
    """Which jobs to list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: JobState | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    before: Annotated[str, Field(max_length=32, description="Only jobs older than this one.")] | None = None


def routes(settings: Settings) -> tuple[Route, ...]:
    """What the gate lets through."""
    return (
        Route("POST", _FILES, scope="ingest", limit=settings.max_files_bytes),
        Route("GET", _LIST, scope="ingest"),
        Route("GET", _ONE, scope="ingest"),
        Route("DELETE", _ONE, scope="ingest"),
        Route("GET", _EVENTS, scope="ingest"),
    )


def router() -> APIRouter:
    """The endpoints."""
    endpoints = APIRouter(tags=["jobs"])
    endpoints.add_api_route(_FILES, receive, methods=["POST"], response_class=Response, status_code=202)

    @endpoints.get(_LIST)
    def list_jobs(query: Annotated[JobsQuery, Query()]) -> Response:
        """The tenant's jobs, newest first."""
        wanted = jobs.latest(state=query.state, limit=query.limit, before=query.before)
        return JSONResponse({"jobs": [as_json(job) for job in wanted]})

    @endpoints.get(_ONE)
    def show_job(job_id: str) -> Response:
        """One job."""
        return JSONResponse(as_json(jobs.get(job_id)))

    @endpoints.delete(_ONE)
    def cancel_job(job_id: str) -> Response:
        """Stop a job. What it has ingested by then stays."""
        return JSONResponse(as_json(cancel(job_id)))

    @endpoints.get(_EVENTS)
    async def follow_job(job_id: str, request: Request) -> Response:
        """A job as it goes on: an event with all of it at each change, the last one when it has ended."""
        job = await to_thread(jobs.get, job_id)
        known = request.headers.get("last-event-id", "")
        events = _events(job, int(known) if known.isdecimal() else 0)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return endpoints


async def _events(job: Job, known: int) -> AsyncIterator[str]:
    """Server-sent events. Their ids are the job's revisions, so whoever comes back misses only what was overtaken."""
    said = monotonic()
    while True:
        if job.finished:
            yield _event("done", job)
            return
        if job.revision > known:
            yield _event("progress", job)
            known, said = job.revision, monotonic()
        elif monotonic() - said >= HEARTBEAT_SECONDS:
            yield ": still there\n\n"
            said = monotonic()
        await sleep(_LOOK_SECONDS)
        if shutdown.requested():
            # The client comes back by itself, to the next process, and says what it has seen.
            return
        job = await to_thread(jobs.get, job.job_id)


def _event(name: str, job: Job) -> str:
    return f"event: {name}\nid: {job.revision}\ndata: {json.dumps(as_json(job), ensure_ascii=False)}\n\n"
