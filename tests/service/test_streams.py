"""Streams over HTTP equal the complete answer, for our own clients, OpenAI's and the AI SDK's."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from pipelines.ask.contract import TurnAnswer

ANSWERABLE = "Что означает код E20?"
ABSENT = "Что означает код E401?"


def sse_events(response: httpx.Response) -> list[tuple[str, str, dict[str, object]]]:
    """Parse the events of a stream: (name, id, data)."""
    results = []
    for block in response.text.strip().split("\n\n"):
        if block.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        results.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return results


def stream(client: httpx.Client, question: str, **headers: str) -> list[tuple[str, str, dict[str, object]]]:
    response = client.post("/ask/stream", json={"question": question}, headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return sse_events(response)


def test_an_answer_in_events(acme: httpx.Client) -> None:
    events = stream(acme, ANSWERABLE)
    names = [name for name, _, _ in events]
    assert names[0] == "accepted"
    assert names[-2:] == ["result", "done"]
    assert names.index("sources-early") < names.index("token")
    answer = TurnAnswer.model_validate(events[-2][2])
    assert "".join(str(data["text"]) for name, _, data in events if name == "token") == answer.answer.text
    assert {data["turn_id"] for _, _, data in events} == {answer.turn_id}
    assert [event_id for _, event_id, _ in events] == [f"{answer.turn_id}:{n}" for n in range(1, len(events) + 1)]
    plain = TurnAnswer.model_validate_json(acme.post("/ask/run", json={"question": ANSWERABLE}).content)
    assert (answer.outcome, answer.answer, answer.citations) == (plain.outcome, plain.answer, plain.citations)


def test_a_stream_resumes_after_the_last_event(
    acme: httpx.Client, anybody: httpx.Client, token: Callable[..., str]
) -> None:
    events = stream(acme, ANSWERABLE)
    middle = events[2][1]
    assert stream(acme, ANSWERABLE, **{"Last-Event-ID": middle}) == events[3:]
    strangers = (token("empty", "ask"), token("acme", "ask", subject="boris"))
    asked = [(f"Bearer {stranger}", middle) for stranger in strangers]
    for authorization, event_id in (*asked, (acme.headers["authorization"], "unknown:1")):
        headers = {"Last-Event-ID": event_id, "Authorization": authorization}
        response = anybody.post("/ask/stream", json={"question": ANSWERABLE}, headers=headers)
        assert (response.status_code, response.json()["code"]) == (404, "stream_unknown")


def test_many_streams_at_once_are_not_mixed(acme: httpx.Client) -> None:
    with ThreadPoolExecutor(16) as pool:
        streams = list(pool.map(lambda _: stream(acme, ANSWERABLE), range(16)))
    for events in streams:
        assert len({data["turn_id"] for _, _, data in events}) == 1
        assert [int(event_id.rpartition(":")[2]) for _, event_id, _ in events] == list(range(1, len(events) + 1))
        assert events[-1][0] == "done"
    assert len({events[0][2]["turn_id"] for events in streams}) == 16


@pytest.fixture
def chat(acme: httpx.Client) -> openai.OpenAI:
    token = acme.headers["authorization"].removeprefix("Bearer ")
    return openai.OpenAI(base_url=str(acme.base_url.join("/v1")), api_key=token, max_retries=0)


def test_openais_client_gets_an_answer(chat: openai.OpenAI) -> None:
    assert [model.id for model in chat.models.list()] == ["ask"]
    completion = chat.chat.completions.create(model="ask", messages=[{"role": "user", "content": ANSWERABLE}])
    text = completion.choices[0].message.content
    assert text is not None
    assert "сливается" in text
    assert "[1] Коды ошибок стиральной машины" in text
    chunks = chat.chat.completions.create(model="ask", messages=[{"role": "user", "content": ANSWERABLE}], stream=True)
    results = list(chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in results) == text
    assert results[-1].choices[0].finish_reason == "stop"


def test_openais_client_keeps_the_conversation(chat: openai.OpenAI) -> None:
    completion = chat.chat.completions.create(
        model="ask",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Стиральная машина показывает E20"},
            {"role": "assistant", "content": "Вода не сливается."},
            {"role": "user", "content": [{"type": "text", "text": "а если E10?"}]},
        ],
    )
    assert "вода не поступает" in str(completion.choices[0].message.content)


def test_openais_client_gets_readable_refusals(chat: openai.OpenAI) -> None:
    refused = chat.chat.completions.create(model="ask", messages=[{"role": "user", "content": ABSENT}])
    assert "E401" in str(refused.choices[0].message.content)
    with pytest.raises(openai.UnprocessableEntityError):
        chat.chat.completions.create(model="ask", messages=[{"role": "system", "content": "No question."}])
    with pytest.raises(openai.AuthenticationError):
        chat.with_options(api_key="nonsense").models.list()


def test_the_ai_sdk_reads_the_answer(acme: httpx.Client) -> None:
    messages = [{"id": "m", "role": "user", "parts": [{"type": "text", "text": ANSWERABLE}]}]
    response = acme.post("/ask/ui-messages", json={"id": "c", "messages": messages, "trigger": "submit-message"})
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    lines = [block.removeprefix("data: ") for block in response.text.strip().split("\n\n")]
    assert lines[-1] == "[DONE]"
    parts = [json.loads(line) for line in lines[:-1]]
    kinds = [part["type"] for part in parts]
    assert (kinds[0], kinds[-1]) == ("start", "finish")
    assert kinds.index("data-sources") < kinds.index("source-document") < kinds.index("text-start")
    turn = next(part["data"] for part in parts if part["type"] == "data-turn")
    text = "".join(part["delta"] for part in parts if part["type"] == "text-delta")
    assert text == TurnAnswer.model_validate(turn).answer.text
    assert kinds.count("source-document") == len(turn["citations"]) > 0
    assert all(part["transient"] for part in parts if part["type"] in ("data-sources", "data-iteration"))


def test_each_pass_is_an_event_and_part_of_the_record(acme: httpx.Client) -> None:
    events = stream(acme, ANSWERABLE)
    (told,) = [data for name, _, data in events if name == "rag_iteration"]
    (recorded,) = TurnAnswer.model_validate(events[-2][2]).meta.iterations
    assert (told["iteration"], told["tookMs"], told["route"]) == (1, recorded.took_ms, "auto")
    assert recorded.took_ms >= recorded.retriever.took_ms > 0
    retriever = told["retriever"]
    assert isinstance(retriever, dict)
    assert retriever["found"] >= retriever["by_words"] > 0
    assert retriever["found"] == recorded.retriever.found
    assert (told["accepted"], told["graded"]) == (recorded.accepted, recorded.graded)
