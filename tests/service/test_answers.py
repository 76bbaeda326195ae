"""Answers over HTTP: the complete `turn.v1` object for every outcome, limits of questions, and repeated requests."""

from collections.abc import Callable

import httpx

from pipelines.ask.contract import TurnAnswer
from tests.service.serving import problem

ASK = {"question": "Что означает код E20?"}


def ask(client: httpx.Client, question: str, **fields: object) -> TurnAnswer:
    response = client.post("/ask/run", json={"question": question, **fields})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answer = TurnAnswer.model_validate_json(response.content)
    assert set(response.json()) == {
        field.serialization_alias or name for name, field in TurnAnswer.model_fields.items()
    }
    return answer


def test_an_answer_with_its_citation(acme: httpx.Client) -> None:
    answer = ask(acme, "Что означает код E20?", session_id="s-1")
    assert answer.outcome == "answered"
    assert answer.citations[0].doc_id == "errors.md"
    assert "[1]" in answer.answer.text
    assert answer.session_id == "s-1"
    assert answer.locale == "ru"
    assert answer.meta.latency_ms > 0
    assert answer.meta.query.original == "Что означает код E20?"


def test_handoff_of_each_route_is_in_the_queue_with_its_contact(
    acme: httpx.Client, token: Callable[..., str], anybody: httpx.Client
) -> None:
    asked = "Позовите оператора, хочу поговорить с человеком"
    call = {"name": "ask", "arguments": {"question": asked, "contact": "mcp@shop.example"}}
    requests: dict[str, dict[str, object]] = {
        "/ask/run": {"question": asked, "contact": "run@shop.example"},
        "/ask/stream": {"question": asked, "contact": "stream@shop.example"},
        "/ask/ui-messages": {
            "messages": [{"role": "user", "parts": [{"type": "text", "text": asked}]}],
            "contact": "ui@shop.example",
        },
        "/v1/chat/completions": {
            "model": "ask",
            "messages": [{"role": "user", "content": asked}],
            "contact": "openai@shop.example",
        },
        "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    }
    for path, body in requests.items():
        response = acme.post(path, json=body)
        assert response.status_code == 200, path
        assert "Сотрудник свяжется с вами." in response.text
    headers = {"Authorization": f"Bearer {token('acme', 'operate')}"}
    queued = anybody.get("/desk/chats?state=queued&with_ticket=true", headers=headers).json()
    contacts = {chat["contact"] for chat in queued if chat["channel"] == "api"}
    assert {f"{name}@shop.example" for name in ("run", "stream", "ui", "openai", "mcp")} <= contacts


def test_a_rate_limited_person_is_told_when_to_retry(anybody: httpx.Client, token: Callable[..., str]) -> None:
    def send(subject: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token('hurried', 'ask', subject=subject)}"}
        return anybody.post("/ask/run", json=ASK, headers=headers)

    assert [send("anna").status_code for _ in range(3)] == [200, 200, 200]
    refused = send("anna")
    problem(refused, 429, "rate_limited")
    assert refused.headers["content-language"] == "en"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert send("boris").status_code == 200


def test_a_key_belongs_to_one_request(acme: httpx.Client) -> None:
    assert acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-3"}).status_code == 200
    other = acme.post("/ask/run", json={**ASK, "locale": "en"}, headers={"Idempotency-Key": "k-3"})
    problem(other, 422, "idempotency_key_reused")
