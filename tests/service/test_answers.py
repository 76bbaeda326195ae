"""Answers over HTTP: the complete `turn.v1` object for every outcome, limits of questions, and repeated requests."""

from collections.abc import Callable

import httpx

from pipelines.ask.contract import TurnAnswer
from settings import Settings
from tenants.chats import tickets
from tenants.core.context import Tenant, acting_as
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


def test_a_refusal_reveals_no_passages(acme: httpx.Client) -> None:
    answer = ask(acme, "Что означает код E401?")
    assert (answer.outcome, answer.refusal_reason) == ("refused", "no_relevant_context")
    assert answer.answer.text
    assert [len(part) for part in (answer.citations, answer.sources, answer.claims)] == [0, 0, 0]


def test_a_handoff_opens_a_ticket_that_the_tenant_can_find(acme: httpx.Client, installation: Settings) -> None:
    question = "Позовите оператора, хочу поговорить с человеком"
    answer = ask(acme, question)
    assert answer.outcome == "human_followup"
    assert answer.handoff is not None
    assert answer.handoff.status == "open"
    assert answer.handoff.ticket_id
    assert answer.handoff.ticket_id in answer.answer.text
    with acting_as(Tenant("acme", "operator")):
        ticket = tickets.get(answer.handoff.ticket_id)
    assert ticket is not None
    assert (ticket.question, ticket.turn_id, ticket.subject) == (question, answer.turn_id, "anna")
    with acting_as(Tenant("globex", "operator")):
        assert tickets.get(answer.handoff.ticket_id) is None


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


def test_an_anonymous_turn_stores_no_identity(acme: httpx.Client) -> None:
    answer = ask(acme, "Позовите оператора, хочу поговорить с человеком", anonymous=True)
    assert answer.handoff is not None
    with acting_as(Tenant("acme", "operator")):
        ticket = tickets.get(answer.handoff.ticket_id or "")
    assert ticket is not None
    assert ticket.subject == "anonymous"


def test_a_tenant_without_documents_gets_a_refusal(
    anybody: httpx.Client, token: Callable[..., str], installation: Settings
) -> None:
    before = {path.name for path in installation.data_dir.rglob("*")}
    headers = {"Authorization": f"Bearer {token('empty')}"}
    response = anybody.post("/ask/run", json={"question": "Что означает код E20?"}, headers=headers)
    assert response.json()["outcome"] == "refused"
    assert not [name for name in {path.name for path in installation.data_dir.rglob("*")} - before if "empty" in name]


def test_a_conversation_continues_only_in_its_own_session(acme: httpx.Client) -> None:
    assert ask(acme, "Стиральная машина показывает E20", session_id="talk-1").outcome == "answered"
    after = ask(acme, "а если E10?", session_id="talk-1")
    assert after.outcome == "answered"
    assert "вода не поступает" in after.answer.text
    assert "стиральная машина" in after.meta.query.search.lower()
    assert ask(acme, "а если E10?", session_id="talk-2").meta.query.search == "а если E10?"


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


def test_the_same_key_gets_the_same_answer(acme: httpx.Client) -> None:
    first, second = (acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-1"}) for _ in range(2))
    assert first.status_code == 200
    assert first.content == second.content
    assert acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-2"}).content != first.content


def test_a_key_belongs_to_one_request(acme: httpx.Client) -> None:
    assert acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-3"}).status_code == 200
    other = acme.post("/ask/run", json={**ASK, "locale": "en"}, headers={"Idempotency-Key": "k-3"})
    problem(other, 422, "idempotency_key_reused")
