"""`POST /playground`: a question under trial settings, for editors."""

from pipelines.ask.playground import PlaygroundRequest, as_json, try_out
from pipelines.ask.runner import Runner
from pipelines.routes import OpenRouter
from settings import Settings


def router(runner: Runner, settings: Settings) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=settings.max_body_bytes, tags=["ask"])

    @endpoints.post("/playground")
    async def play(body: PlaygroundRequest) -> dict[str, object]:
        """Answer once for each of the settings to try, without side effects."""
        return as_json(await try_out(runner, body))

    return endpoints
