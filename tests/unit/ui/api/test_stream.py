"""The streams as a client sees them that waits for long, or comes back."""

from collections.abc import Iterator
from threading import Event

import httpx
import pytest
from fastapi import FastAPI, routing

from components.turn import Turn
from pipelines import shutdown
from pipelines.ask import streams
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered
from ui.api import stream, ui_messages

BODIES: dict[str, dict[str, object]] = {
    "/ask/stream": {"question": "q"},
    "/ask/ui-messages": {"messages": [{"role": "user", "parts": [{"type": "text", "text": "q"}]}]},
}


@pytest.fixture
def release(installation: Settings) -> Iterator[Event]:
    with acting_as(Tenant("acme", "anna", frozenset({"ask"}))):
        Registry().add("acme")
        yield Event()


def served(runner: Runner) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(stream.router(runner, get_settings()))
    app.include_router(ui_messages.router(runner, get_settings()))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://opora", timeout=60)


@pytest.mark.parametrize("path", sorted(BODIES))
async def test_silence_is_filled(path: str, release: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_PING_INTERVAL", 0.01)

    def stall(turn: Turn) -> Turn:
        release.wait(0.2)
        return answered(turn)

    runner = Runner(Ask(FakeEngine(stall)), workers=1, budget=30)
    async with served(runner) as client:
        response = await client.post(path, json=BODIES[path])
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "\n\n: ping\n\n" in response.text
    runner.close()


@pytest.mark.parametrize("path", sorted(BODIES))
async def test_a_shutdown_ends_a_stream_that_waits(path: str, release: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(shutdown, "requested", lambda: True)

    def stall(turn: Turn) -> Turn:
        assert release.wait(30)
        return answered(turn)

    runner = Runner(Ask(FakeEngine(stall)), workers=1, budget=30)
    async with served(runner) as client:
        # The turn still waits, so that only the shutdown can have ended the response.
        response = await client.post(path, json=BODIES[path])
    assert response.is_success
    assert "event: done" not in response.text
    release.set()
    runner.close()
