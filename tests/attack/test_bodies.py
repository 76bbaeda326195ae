"""Bodies that cost more to read than to send."""

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest
from pydantic_core import from_json
from starlette import requests
from starlette.testclient import TestClient

import app
from pipelines import request_bodies
from pipelines.ask.openai_chat import ChatRequest, Message, parse
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.storage import database
from tests.attack.attacking import ATTACKER, VICTIM, add_site, client_of, is_answered, visitor_of
from tests.service.serving import ALL_SCOPES, Server, environment, in_force, problem, serving

JSON = {"Content-Type": "application/json"}
ZEROS = b"0," * 400_000 + b"0"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ask/run", b'{"question": "E20?", "filters": {"tags": [%s]}}' % ZEROS),
        ("/ingest/run", b'{"documents": [%s]}' % (ZEROS + b"," + ZEROS)),
        ("/ingest/run", b'{"documents": [%s]}' % (b"{}," * 1_000_000 + b"{}")),
        ("/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [%s]}' % ZEROS),
    ],
    ids=["strings that are numbers", "articles that are numbers", "empty articles", "mcp"],
)
def test_a_body_of_many_values_is_refused_unparsed(attacker: httpx.Client, path: str, body: bytes) -> None:
    """Each of these took 2 to 8 seconds to parse and validate."""
    problem(attacker.post(path, content=body, headers=JSON), 413, "body_too_complex")


def test_a_large_honest_body_is_taken(attacker: httpx.Client) -> None:
    text = 'Код "E20", модель [A], цена 5,0 \\ 3. ' * 2_000
    documents = [{"doc_id": f"large-{number}", "text": text, "tags": ["a", "b"]} for number in range(3)]
    assert attacker.post("/ingest/run", json={"documents": documents}).json()["added"] == 3
    ascii_only = json.dumps({"documents": [{"doc_id": "escaped", "text": text}]})
    assert attacker.post("/ingest/run", content=ascii_only, headers=JSON).json()["added"] == 1


def test_metadata_is_bounded(attacker: httpx.Client) -> None:
    document = {"doc_id": "much", "text": "Возврат занимает 14 дней.", "note": "x" * 70_000}
    problem(attacker.post("/ingest/run", json={"documents": [document]}), 422, "metadata_too_large")
    report = attacker.post("/ingest/run", json={"documents": [{**document, "note": "x" * 60_000}]})
    assert report.json()["added"] == 1


def test_a_verdict_is_short(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_verdicts")
    with visitor_of(server, "site_verdicts") as visitor:
        body = {"turn_id": "t", "thumb": "up", "comment": "x" * 20_000}
        problem(visitor.post("/feedback", json=body), 413, "body_too_large")


@pytest.fixture
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Settings]]:
    """A service with a limit on questions."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("limited"), rate_limit_per_minute=5)
    for tenant_id in (ATTACKER, VICTIM):
        Registry(settings).add(tenant_id)
    with serving(environment(settings)) as server:
        yield server, settings
    database.close_all()


def test_refused_bodies_count(limited: tuple[Server, Settings]) -> None:
    with client_of(*limited, ATTACKER) as attacker, client_of(*limited, VICTIM) as victim:
        codes = [attacker.post("/feedback", json={"documents": 0}).status_code for _ in range(8)]
        assert codes == [422] * 5 + [429] * 3
        problem(attacker.post("/ingest/run", json={"documents": []}), 429, "rate_limited")
        assert is_answered(victim)


def test_a_large_body_is_parsed_once_in_a_thread(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    on_loop: list[bool] = []

    def counted(text: bytes) -> object:
        parsed.append(len(text))
        return json.loads(text)

    def read(body: bytes) -> object:
        on_loop.append(asyncio._get_running_loop() is not None)
        return from_json(body)

    monkeypatch.setattr(requests, "json", SimpleNamespace(loads=counted))
    monkeypatch.setattr(request_bodies, "from_json", read)
    token = issue(installation, ATTACKER, scopes=ALL_SCOPES, subject="anna", ttl_seconds=600)
    documents = [{"doc_id": f"once-{number}", "text": "Возврат занимает 14 дней. " * 500} for number in range(10)]
    with in_force(installation), TestClient(app.create_app(installation)) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        client.post("/ingest/run", json={"documents": documents})
        assert on_loop == [False]
        assert client.post("/ask/run", json={"question": "Сколько занимает возврат?"}).status_code in (200, 503)
    assert parsed == []


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed_domains": [f"a{number}.example" for number in range(11_000)]},
        {"approved_offers": {f"refund/{number}": "Offer" for number in range(1_000)}},
        {"approved_offers": {"refund/" + "x" * 100_000: "Offer"}},
    ],
    ids=["domains", "offers", "name of an offer"],
)
def test_lists_of_a_policy_are_bounded(attacker: httpx.Client, fields: dict[str, object]) -> None:
    refused = attacker.patch("/settings/policy", json={"set": fields})
    problem(refused, 422, "policy_invalid")


def test_a_conversation_that_a_client_keeps_is_bounded() -> None:
    """Earlier messages of 1 MB made one question compute for 9.6 s, and its prompt 128,000 tokens long."""
    messages = [Message(role="user", content=f"{number} " + "4276 1234 " * 480) for number in range(190)]
    question, history = parse(ChatRequest(messages=(*messages, Message(role="user", content="А как её исправить?"))))
    assert question.question == "А как её исправить?"
    assert [one.question.split()[0] for one in history] == [str(number) for number in range(180, 190)]
    assert {len(one.question) for one in history} == {2_000}
