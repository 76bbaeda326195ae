"""Streams that are open when their reader loses access."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from time import monotonic, time

import httpx
import pytest

from settings import Settings
from tenants.access import revocations, tokens
from tenants.access.tokens import issue
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.chats import sites, store
from tenants.core.context import Tenant, acting_as
from tenants.privacy import removal
from tenants.storage import database
from tenants.work import locks
from tests.attack.attacking import VICTIM, add_site, visitor_of
from tests.service.serving import Server, environment, in_force, problem, serving

MOST_SECONDS = 40.0
RECHECK_SECONDS = 0.5
BRIEF = {"pipelines.gate.RECHECK_SECONDS": RECHECK_SECONDS, "fastapi.routing._PING_INTERVAL": 1.0}
"""A token is checked again every 4 seconds, where something is sent, and something is sent every 15 seconds."""

SUSPENDED = "suspended"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("revoked"))
    Registry(settings).add(VICTIM)
    yield settings
    locks.close_all()
    database.close_all()


@pytest.fixture(scope="module")
def server(installation: Settings) -> Iterator[Server]:
    with serving(environment(installation), BRIEF) as running:
        yield running


@pytest.fixture
def streams(server: Server, installation: Settings) -> Iterator[list[httpx.Response]]:
    """Return open streams: of an operator, of a visitor, and of a tenant."""
    Registry(installation).add(SUSPENDED)
    add_site(installation, VICTIM, "site_left")
    with ExitStack() as opened:

        def follow(client: httpx.Client, path: str) -> httpx.Response:
            return opened.enter_context(client.stream("GET", path))

        def operator(tenant_id: str) -> httpx.Client:
            token = issue(installation, tenant_id, scopes=["operate"], subject="boris", ttl_seconds=600)
            headers = {"Authorization": f"Bearer {token}"}
            return opened.enter_context(httpx.Client(base_url=server.url, timeout=60, headers=headers))

        visitor = opened.enter_context(visitor_of(server, "site_left"))
        chat_id = visitor.post("/chats", json={}).json()["chat_id"]
        with in_force(installation), acting_as(Tenant(SUSPENDED, "anna")):
            suspended_id = store.start().chat_id
        yield [
            follow(operator(VICTIM), f"/desk/chats/{chat_id}/events"),
            follow(visitor, f"/chats/{chat_id}/events"),
            follow(operator(SUSPENDED), f"/desk/chats/{suspended_id}/events"),
        ]


def test_streams_end_with_access(streams: list[httpx.Response], installation: Settings) -> None:
    assert [one.status_code for one in streams] == [200] * len(streams)
    with in_force(installation):
        with acting_as(Tenant(VICTIM, "admin")):
            revocations.revoke("subject", "boris")
            sites.remove("site_left")
        registry.suspend(SUSPENDED, "admin")
    deadline = monotonic() + MOST_SECONDS
    with ThreadPoolExecutor(len(streams)) as readers:
        ended = list(readers.map(lambda one: _ends(one, deadline), streams))
    assert ended == [True] * len(streams)


def _ends(stream: httpx.Response, deadline: float) -> bool:
    return all(monotonic() < deadline for _ in stream.iter_bytes())


def test_a_slow_request_ends_with_its_token(server: Server, installation: Settings) -> None:
    """A request that was sent slowly made a new token after all tokens had been revoked."""
    Registry(installation).add("slow")
    raw = issue(installation, "slow", scopes=["admin"], subject="thief", ttl_seconds=600)

    def body() -> Iterator[bytes]:
        yield b'{"subject": "ghost", "scopes": ["ask"],'
        with in_force(installation), acting_as(Tenant("slow", "admin")):
            revocations.revoke("tenant")
        Event().wait(2 * RECHECK_SECONDS)
        yield b' "ttl_seconds": 600}'

    headers = {"Authorization": f"Bearer {raw}", "Content-Type": "application/json"}
    problem(httpx.post(f"{server.url}/tokens", content=body(), headers=headers, timeout=30), 401, "token_revoked")


def test_tokens_of_a_removed_tenant_open_no_other_of_its_id(
    server: Server, installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token lives for up to a year, and its revocation was removed with the tenant."""
    monkeypatch.setattr(tokens, "time", lambda: time() - 60)
    raw = issue(installation, "reused", scopes=["admin"], subject="boris", ttl_seconds=600)
    monkeypatch.undo()
    headers = {"Authorization": f"Bearer {raw}"}
    with in_force(installation):
        Registry(installation).add("reused")
        with acting_as(Tenant("reused", "admin")):
            revocations.revoke("subject", "boris")
        removal.remove("reused")
        Registry(installation).add("reused")
        problem(httpx.get(f"{server.url}/tokens", headers=headers), 401, "token_revoked")
