"""`POST /playground`: a question under trial settings, for editors."""

from fastapi import APIRouter

from pipelines.ask.playground import PlaygroundRequest, as_json, try_out
from pipelines.ask.runner import Runner
from pipelines.gate import Route
from settings import Settings

_PATH = "/playground"


def routes(settings: Settings) -> tuple[Route, ...]:
    """Open routes."""
    return (Route("POST", _PATH, scope="ingest", body=PlaygroundRequest, limit=settings.max_body_bytes),)


def router(runner: Runner) -> APIRouter:
    """Return the endpoint."""
    endpoints = APIRouter(tags=["ask"])

    @endpoints.post(_PATH)
    async def play(body: PlaygroundRequest) -> dict[str, object]:
        """Answer once for each of the settings to try, without side effects."""
        return as_json(await try_out(runner, body))

    return endpoints
