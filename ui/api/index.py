"""`/index`: rebuild and roll back the index as jobs, because only the serving process may open it."""

from typing import Literal

from starlette.responses import JSONResponse, Response

from components.language.encoder_settings import EncoderSettings
from pipelines.ingest.jobs import as_json
from pipelines.ingest.rebuild import generations_json
from pipelines.routes import OpenRouter
from tenants.core.errors import NotFound
from tenants.knowledge import generations
from tenants.work import jobs


def router(encoder: EncoderSettings) -> OpenRouter:
    """Return the endpoints."""
    endpoints = OpenRouter("admin", tags=["index"])

    @endpoints.post("/index/rebuild", status_code=202)
    def rebuild() -> Response:
        """Rebuild the index: re-encode all chunks of the tenant and switch to the new generation."""
        return _accepted("rebuild")

    @endpoints.post("/index/rollback", status_code=202)
    def rollback() -> Response:
        """Roll back to the generation before the last rebuild."""
        if generations.in_state("kept") is None:
            raise NotFound("generation_not_kept")
        return _accepted("rollback")

    @endpoints.get("/index/generations")
    def list_generations() -> Response:
        """List the generations and whether a rebuild is due."""
        return JSONResponse(generations_json(encoder))

    return endpoints


def _accepted(kind: Literal["rebuild", "rollback"]) -> Response:
    job = jobs.add(jobs.new_id(), kind, ())
    return JSONResponse(as_json(job), status_code=202, headers={"Location": f"/jobs/{job.job_id}"})
