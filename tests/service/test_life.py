"""Start, health and shutdown of a service process."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic

import httpx
import pytest

from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.storage import database
from tests.service.serving import ARTICLES, ROOT, Server, environment, problem, serving


def test_health_needs_no_token(anybody: httpx.Client) -> None:
    assert anybody.get("/healthz").json() == {"status": "ok"}
    assert anybody.get("/readyz").json() == {"status": "ready"}


def test_telemetry_is_off_however_the_service_is_started() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "HAYSTACK_TELEMETRY_ENABLED"}
    look = "import app; from haystack.telemetry import _telemetry; raise SystemExit(bool(_telemetry.telemetry))"
    assert subprocess.run([sys.executable, "-c", look], cwd=ROOT, env=environment, check=False).returncode == 0


def test_cross_origin_requests_are_refused(anybody: httpx.Client, token: Callable[..., str]) -> None:
    preflight = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    asked = anybody.options("/ask/run", headers=preflight)
    assert asked.status_code == 400
    assert "access-control-allow-origin" not in asked.headers
    headers = {"Origin": "https://evil.example", "Authorization": f"Bearer {token('empty')}"}
    answered = anybody.post("/ask/run", json={"question": "Что означает E20?"}, headers=headers)
    assert "access-control-allow-origin" not in answered.headers
    assert "server" not in answered.headers


@pytest.mark.chaos
def test_a_stopping_service_finishes_work_and_keeps_data_consistent(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, rate_limit_per_minute=0)
    Registry(settings).add("acme", locale="ru")
    raw = issue(settings, "acme", scopes=("ask", "ingest"), subject="anna", ttl_seconds=600)
    database.close_all()
    headers = {"Authorization": f"Bearer {raw}"}

    first = Server({**environment(settings), "OPORA_DRAIN_SECONDS": "0.5"})
    with httpx.Client(base_url=first.url, timeout=60, headers=headers) as client, ThreadPoolExecutor(4) as pool:
        first.wait_until_up()
        assert client.post("/ingest/run", json={"documents": ARTICLES}).status_code == 200
        question = {"question": "Что означает код E20?"}
        answers = [pool.submit(client.post, "/ask/run", json=question) for _ in range(8)]
        answers[0].result()
        assert first.stop() == 0
        for answer in answers:
            # A request that had not reached the process may be refused; any other gets its answer.
            if answer.exception() is None:
                assert answer.result().status_code == 200
            else:
                assert isinstance(answer.exception(), httpx.TransportError)
    assert any("opora.service closed" in line for line in first.log)
    assert not [line for line in first.log if " ERROR " in line or "Traceback" in line]

    second = Server(environment(settings))
    with httpx.Client(base_url=second.url, timeout=60, headers=headers) as client:
        second.wait_until_up()
        answer = client.post("/ask/run", json={"question": "Что означает код E20?"}).json()
        assert second.stop() == 0
    assert answer["outcome"] == "answered"


@pytest.mark.chaos
def test_a_second_service_says_so_and_takes_over_and_repairs_what_it_finds(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, rate_limit_per_minute=0)
    Registry(settings).add("acme", locale="ru")
    raw = issue(settings, "acme", scopes=("ask", "ingest"), subject="anna", ttl_seconds=600)
    database.close_all()
    headers = {"Authorization": f"Bearer {raw}"}
    question = {"question": "Что означает код E20?"}

    with serving(environment(settings)) as first, serving(environment(settings)) as second:
        with httpx.Client(base_url=first.url, timeout=60, headers=headers) as client:
            assert client.post("/ingest/run", json={"documents": ARTICLES}).status_code == 200
            assert client.get("/readyz").json() == {"status": "ready"}
        with httpx.Client(base_url=second.url, timeout=60, headers=headers) as client:
            problem(client.get("/readyz"), 503, "data_in_use")
            assert not any("opora.service ready" in line for line in second.log)
            # The cache is at most seconds old.
            assert _eventually(lambda: client.post("/ask/run", json=question).status_code == 503)
            problem(client.post("/ask/run", json=question), 503, "data_in_use")
            assert first.stop() == 0
            # Damaged while no process has it open: the next service to open it notices.
            for file in (tmp_path / "index").rglob("segment.json"):
                file.write_bytes(b"")

            def answered() -> bool:
                # `/readyz` takes the index over, if it is called repeatedly.
                client.get("/readyz")
                answer = client.post("/ask/run", json=question).json()
                # Never an answer as from an empty knowledge base.
                assert answer.get("outcome", "failed") in {"failed", "answered"}, answer
                return bool(answer.get("outcome") == "answered")

            assert _eventually(answered)
            assert client.get("/readyz").json() == {"status": "ready"}
        assert any("unreadable" in line for line in second.log)


def _eventually(happens: Callable[[], bool]) -> bool:
    deadline = monotonic() + 60
    while monotonic() < deadline:
        if happens():
            return True
        Event().wait(0.2)
    return False


def test_a_problem_without_a_known_caller_uses_the_requested_language(anybody: httpx.Client) -> None:
    response = anybody.get("/nothing", headers={"Accept-Language": "en"})
    assert problem(response, 404, "not_found")["title"] == "Not found"
