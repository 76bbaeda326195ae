"""Small ways in: a byte, an address, a key, a second site, another tenant's write."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import time

import httpx
import jwt
import pytest
from pydantic import SecretStr
from sqlalchemy import event
from starlette.testclient import TestClient

import app
from components.ingest.fetch import is_public
from evaluation.benchmarks.attacks import SHOP
from pipelines.desk_gate import SIGN_IN
from settings import Settings
from tenants.access import installation as secrets
from tenants.access.keys import signing_key
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.audit.chain import GENESIS, Head, Verification
from tenants.chats import conversation_memory, sites
from tenants.chats.conversation_memory import PastTurn
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, CallerError
from tenants.desk import operators
from tenants.storage import database
from tenants.storage.cache import TenantCache
from tenants.work import idempotency
from tests import servers
from tests.attack.attacking import ATTACKER, VICTIM
from tests.desk import SAME_ORIGIN
from tests.service.serving import Server, in_force, problem
from ui.api import records


@pytest.mark.parametrize(
    "path",
    ["/documents?words=%00", "/audit?person=a%00b", "/desk/chats?assignee=%00"],
)
def test_a_query_with_a_null_byte_is_the_callers_mistake(attacker: httpx.Client, path: str) -> None:
    problem(attacker.get(path), 422, "invalid_request")
    assert attacker.get("/desk/sso?tenant=%00").status_code == 422


WANTED = "Позовите оператора"
BY_PROTOCOL: dict[str, dict[str, object]] = {
    "/ask/run": {"question": WANTED},
    "/ask/stream": {"question": WANTED},
    "/ask/ui-messages": {"messages": [{"role": "user", "parts": [{"type": "text", "text": WANTED}]}]},
    "/v1/chat/completions": {"model": "ask", "messages": [{"role": "user", "content": WANTED}]},
}


@pytest.mark.parametrize(("path", "body"), BY_PROTOCOL.items(), ids=BY_PROTOCOL)
def test_a_contact_that_reaches_nobody_is_refused(attacker: httpx.Client, path: str, body: dict[str, object]) -> None:
    """Any text counted as a contact, and the reply promised the customer an answer."""
    response = attacker.post(path, json={**body, "contact": "nonsense"})
    assert (response.status_code, "contact_invalid" in response.text) == (422, True), response.text


@pytest.mark.parametrize("address", ["168.63.129.16", "169.254.169.254", "100.100.100.200", "fd00:ec2::254"])
def test_a_clouds_own_address_is_not_public(address: str) -> None:
    assert not is_public(address)


def test_customers_of_two_sites_with_one_number_are_two(server: Server, installation: Settings) -> None:
    with in_force(installation), acting_as(Tenant(VICTIM, "admin")):
        brands = [sites.add(name, [SHOP], identified=True) for name in ("Brand A", "Brand B")]
    chats: list[str] = []
    for brand in brands:
        assert brand.identity_secret
        identified = {"aud": installation.token_audience, "sub": "1", "exp": int(time()) + 600}
        identity = jwt.encode(identified, brand.identity_secret, "HS256")
        with httpx.Client(base_url=server.url, timeout=60) as client:
            body = {"site": brand.key, "identity": identity}
            token = client.post("/widget/sessions", json=body, headers={"Origin": SHOP}).json()["token"]
            client.headers["Authorization"] = f"Bearer {token}"
            assert client.get("/chats").json() == []
            for chat in chats:
                problem(client.get(f"/chats/{chat}"), 404, "chat_unknown")
            chats.append(client.post("/chats", json={}).json()["chat_id"])
            assert [one["chat_id"] for one in client.get("/chats").json()] == chats[-1:]


@pytest.mark.parametrize(("keys", "code"), [("data_keys", "data_keys_short"), ("token_keys", "token_keys_short")])
@pytest.mark.parametrize("given", ["a", f"{'long' * 8},short"])
def test_secrets_that_can_be_guessed_are_refused_at_the_start(tmp_path: Path, keys: str, code: str, given: str) -> None:
    with pytest.raises(CallerError, match=code):
        secrets.check_secrets(Settings(data_dir=tmp_path, **{keys: SecretStr(given)}))  # type: ignore[arg-type]


@pytest.fixture
def shared(postgres_url: str) -> Iterator[str]:
    with servers.own_database(postgres_url) as url:
        yield url.render_as_string(hide_password=False)
    database.close_all()


def test_replicas_that_sign_with_other_keys_do_not_start(tmp_path: Path, shared: str) -> None:
    def replica(name: str, token_keys: str = "") -> Settings:
        return Settings(
            data_dir=tmp_path / name,
            database_url=shared,
            data_keys=SecretStr("the same for all replicas of this one"),
            token_keys=SecretStr(token_keys),
        )

    first, second = replica("first"), replica("second")
    for one in (first, second):
        one.data_dir.mkdir()
        with in_force(one):
            signing_key(one)
    with in_force(first):
        secrets.check_secrets(first)
        secrets.check_secrets(first)
    with in_force(second), pytest.raises(CallerError, match="token_keys_differ"):
        secrets.check_secrets(second)
    given = replica("second", "a key that both of these replicas have")
    with in_force(given):
        secrets.check_secrets(given)


@pytest.fixture
def single(tmp_path: Path, shared: str) -> Iterator[TestClient]:
    """A service on PostgreSQL whose only operators are those of one tenant."""
    settings = Settings(data_dir=tmp_path, database_url=shared, sign_ins_per_minute=2)
    with in_force(settings):
        Registry(settings).add(VICTIM)
        with acting_as(Tenant(VICTIM, "admin")):
            sites.add("site", [SHOP], key="site_single")
            operators.add("anna", "river of snow 42", role="admin")
        with TestClient(app.create_app(settings)) as client:
            yield client


def test_a_body_with_a_null_byte_is_no_fault_of_ours(single: TestClient) -> None:
    refused = single.post("/widget/sessions", json={"site": "a\0"}, headers={"Origin": SHOP})
    assert refused.status_code == 404
    session = single.post("/widget/sessions", json={"site": "site_single"}, headers={"Origin": SHOP}).json()
    headers = {"Authorization": f"Bearer {session['token']}"}
    chat = single.post("/chats", json={}, headers=headers).json()["chat_id"]
    assert single.post(f"/chats/{chat}/consent", json={"text": "Yes\0"}, headers=headers).status_code == 204


def test_a_sign_in_counts_however_its_company_is_given(single: TestClient) -> None:
    def sign_in(company: str) -> int:
        form = {"login": "anna", "password": "wrong", "company": company}
        return single.post(SIGN_IN, data=form, headers=SAME_ORIGIN).status_code

    assert [sign_in(company) for company in ("", VICTIM, "", VICTIM)] == [401, 401, 429, 429]


def test_the_write_of_one_tenant_leaves_what_is_loaded_for_another() -> None:
    cache: TenantCache[str] = TenantCache()

    def load(_: str | None) -> str:
        cache.drop(ATTACKER)
        return "loaded"

    assert cache.get(("database", VICTIM), load) == "loaded"
    assert cache.peek(("database", VICTIM)) == "loaded"

    def load_changed(_: str | None) -> str:
        cache.drop(VICTIM)
        return "before the write"

    cache.drop(VICTIM)
    assert cache.get(("database", VICTIM), load_changed) == "before the write"
    assert cache.peek(("database", VICTIM)) is None
    cache.drop(None)
    assert cache.get(("database", VICTIM), load) == "loaded"


def test_no_question_cleans_up_after_other_tenants(installation: Settings) -> None:
    statements: list[str] = []
    with in_force(installation), acting_as(Tenant(VICTIM, "anna")):
        engine = database.engine(installation)
        event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
        conversation_memory.remember("s1", PastTurn("E20?", "answered", ()))
        assert idempotency.begin("a-key", "a-hash") is None
    assert any(one.startswith("INSERT") for one in statements)
    assert not [one for one in statements if one.startswith("DELETE")]


async def test_a_tenant_verifies_its_audit_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    go = Event()
    monkeypatch.setattr(search, "verify", lambda: go.wait(20) and Verification(0, 0, Head(0, GENESIS), ()))
    with acting_as(Tenant(ATTACKER, "admin")):
        first = asyncio.create_task(records.verify_chain())
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await records.verify_chain()
    go.set()
    assert (await first)["links"] == 0
