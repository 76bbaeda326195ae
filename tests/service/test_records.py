"""The records of a real service: an acknowledged answer survives the process."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from settings import get_settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.audit.chain import ChainVerifier, Content, Head, Link
from tenants.audit.recorder import Recorder
from tenants.audit.search import TurnQuery
from tenants.core.context import Tenant, acting_as
from tests.service.serving import ARTICLES, Server, environment, problem
from tests.webhooks import wait_until


@pytest.fixture
def operator(token: Callable[..., str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token('acme', 'operate', 'admin')}"}


def test_a_recorded_answer_can_be_found(acme: httpx.Client, operator: dict[str, str]) -> None:
    question = "Что значит код E20? Пишите на ivan@mail.ru"
    answer = acme.post("/ask/run", json={"question": question, "session_id": "kept"}).json()
    path = f"/audit/{answer['turn_id']}"
    wait_until(lambda: acme.get(path, headers=operator).status_code == 200)
    shown = acme.get(path, headers=operator).json()
    assert shown["content"]["request"]["question"] == "Что значит код E20? Пишите на [email]"
    assert shown["content"]["answer"]["citations"] == answer["citations"]
    result = acme.get(
        "/audit",
        params={"document": "errors.md", "cited": "true", "session_id": "kept", "subject": "anna", "limit": 1},
        headers=operator,
    ).json()
    assert [record["turn_id"] for record in result["records"]] == [answer["turn_id"]]
    assert result["next"] == shown["sequence"]
    assert acme.get("/audit", params={"before": 1}, headers=operator).json() == {"records": [], "next": None}


def test_the_export_verifies_by_itself(acme: httpx.Client, operator: dict[str, str]) -> None:
    response = acme.get("/audit/export", headers=operator)
    assert response.headers["content-type"].startswith("application/x-ndjson")
    links = []
    for line in response.text.splitlines():
        record = json.loads(line)
        content = Content(**record.pop("content")) if record["content"] else record.pop("content")
        at = record.pop("at")
        links.append(Link(**record, at=_moment(at), content=content))
    verifier = ChainVerifier("acme", [Head(links[-1].sequence, links[-1].hash)])
    verifier.feed(links)
    assert verifier.result().faults == ()


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at)


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 501}, {"outcome": "happy"}, {"since": "yesterday"}, {"before": "x"}]
)
def test_a_query_out_of_bounds_is_refused(acme: httpx.Client, operator: dict[str, str], query: dict[str, str]) -> None:
    problem(acme.get("/audit", params=query, headers=operator), 422, "field_invalid")


def test_an_answer_is_judged(acme: httpx.Client, operator: dict[str, str]) -> None:
    turn_id = acme.post("/ask/run", json={"question": "Что значит код E20?", "anonymous": True}).json()["turn_id"]
    wait_until(lambda: acme.get(f"/audit/{turn_id}", headers=operator).status_code == 200)
    verdict = {"turn_id": turn_id, "thumb": "down", "reason": "unclear", "comment": " Ответьте на ivan@mail.ru "}
    stored = acme.post("/feedback", json=verdict).json()
    assert _moment(stored.pop("at")).tzinfo
    assert stored == verdict | {"comment": "Ответьте на [email]"}
    unknown = problem(acme.post("/feedback", json=verdict | {"turn_id": "nothing"}), 404, "turn_unknown")
    foreign = problem(acme.post("/feedback", json=verdict | {"turn_id": "turn-of-globex"}), 404, "turn_unknown")
    assert {**unknown, "request_id": ""} == {**foreign, "request_id": ""}
    for wrong in ({"thumb": "sideways"}, {"reason": "ugly"}, {"comment": "а" * 1_001}, {"turn_id": "\x00"}):
        problem(acme.post("/feedback", json=verdict | wrong), 422, "field_invalid")


@pytest.mark.chaos
def test_a_killed_service_has_recorded_what_it_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("solo")
    token = issue(get_settings(), "solo", scopes=("ask", "ingest"), subject="anna", ttl_seconds=3_600)
    server = Server(environment(get_settings()))
    server.wait_until_up()
    with httpx.Client(base_url=server.url, timeout=60, headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.post("/ingest/run", json={"documents": ARTICLES}).status_code == 200
        acknowledged = [
            client.post("/ask/run", json={"question": f"Что значит код E{number}?"}).json()["turn_id"]
            for number in range(10, 17)
        ]
        server.process.kill()
    server.stop()
    Recorder().collect()
    with acting_as(Tenant("solo", "anna")):
        assert sorted(record.turn_id for record in search.find(TurnQuery())) == sorted(acknowledged)
        assert search.verify().faults == ()
