"""An installation under attack: one tenant that does its worst, another one that only wants its answer.

A test holds what the attacker has asked for open, so that what it shows does not depend on how fast the machine is.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from settings import Settings
from tenants import database
from tenants.registry import Registry
from tenants.tokens import issue
from tests.attack.attacking import ATTACKER, PATIENCE_SECONDS, VICTIM, SlowTool
from tests.service.serving import ALL_SCOPES, ARTICLES, Server, environment, serving


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("attacked"),
        rate_limit_per_minute=0,
        rate_limit_per_day=0,
        tool_networks="127.0.0.0/8",
    )
    for tenant_id in (ATTACKER, VICTIM):
        Registry(settings).add(tenant_id)
    yield settings
    database.close_all()


@pytest.fixture(scope="session")
def server(installation: Settings) -> Iterator[Server]:
    with serving(environment(installation)) as running:
        yield running


@contextmanager
def _client(server: Server, installation: Settings, tenant_id: str) -> Iterator[httpx.Client]:
    token = issue(installation, tenant_id, scopes=ALL_SCOPES, subject="anna", ttl_seconds=3_600)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, headers=headers) as client:
        assert client.post("/ingest/run", json={"documents": ARTICLES}).is_success
        yield client


@pytest.fixture(scope="session")
def attacker(server: Server, installation: Settings) -> Iterator[httpx.Client]:
    with _client(server, installation, ATTACKER) as client:
        yield client


@pytest.fixture(scope="session")
def victim(server: Server, installation: Settings) -> Iterator[httpx.Client]:
    with _client(server, installation, VICTIM) as client:
        yield client


@pytest.fixture
def answered(victim: httpx.Client) -> Callable[[], bool]:
    """Whether the victim gets its answer."""
    return lambda: victim.post("/ask/run", json={"question": "Что значит код E20?"}).json()["outcome"] == "answered"


@pytest.fixture
def slow_tool() -> Iterator[SlowTool]:
    tool = SlowTool()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            tool.called.release()
            tool.go.wait(PATIENCE_SECONDS)
            body = json.dumps({"status": "едет"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as far:
        tool.url = f"http://127.0.0.1:{far.server_port}/"
        listening = Thread(target=far.serve_forever)
        listening.start()
        yield tool
        tool.go.set()
        far.shutdown()
        listening.join()
