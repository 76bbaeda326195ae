"""An installation under attack: one hostile tenant, and another that only asks questions.

Each test keeps the attacker's requests open, so that the result does not depend on the speed of the machine.
"""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.storage import database
from tests.attack.attacking import ATTACKER, PATIENCE_SECONDS, VICTIM, ZONE, SlowTool, client_of, is_answered
from tests.servers import Quiet, http
from tests.service.serving import Server, environment, serving


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
    with serving(environment(installation) | {"TZ": ZONE}) as running:
        yield running


@pytest.fixture(scope="session")
def attacker(server: Server, installation: Settings) -> Iterator[httpx.Client]:
    with client_of(server, installation, ATTACKER) as client:
        yield client


@pytest.fixture(scope="session")
def victim(server: Server, installation: Settings) -> Iterator[httpx.Client]:
    with client_of(server, installation, VICTIM) as client:
        yield client


@pytest.fixture
def answered(victim: httpx.Client) -> Callable[[], bool]:
    """Whether the victim gets its answer."""
    return lambda: is_answered(victim)


@pytest.fixture
def slow_tool() -> Iterator[SlowTool]:
    tool = SlowTool()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            tool.secrets.append(self.headers["authorization"])
            tool.called.release()
            tool.go.wait(PATIENCE_SECONDS)
            body = json.dumps({"status": "едет"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http(Handler) as url:
        tool.url = f"{url}/"
        yield tool
        tool.go.set()
