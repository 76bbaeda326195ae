"""Answers written by a model, over HTTP: streamed as checked, counted, and cancelled without a listener."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.server import Simulator
from pipelines.ask.contract import TurnAnswer
from tests.service.serving import ARTICLES
from tests.service.test_streams import ABSENT, ANSWERABLE, stream
from tests.webhooks import wait_until

PATIENCE_SECONDS = 30
TOKENS = ("prompt", "completion")


@pytest.fixture(scope="module")
def written(
    anybody: httpx.Client, token: Callable[..., str], ingest: Callable[..., httpx.Response]
) -> Iterator[httpx.Client]:
    """A client of the tenant with answers written by the simulator."""
    assert ingest("written", ARTICLES).status_code == 200
    with httpx.Client(
        base_url=anybody.base_url, timeout=60, headers={"Authorization": f"Bearer {token('written')}"}
    ) as client:
        yield client


@pytest.fixture
def models(simulated_models: tuple[Simulator, str]) -> Simulator:
    simulated_models[0].set_knobs(Knobs())
    return simulated_models[0]


def test_streamed_sentences_are_verified_and_join_to_the_answer(written: httpx.Client, models: Simulator) -> None:
    events = stream(written, ANSWERABLE)
    names = [name for name, _, _ in events]
    assert names.index("sources-early") < names.index("token") < names.index("verdict") < names.index("result")
    nodes = [data["node"] for name, _, data in events[: names.index("token")] if name == "stage"]
    assert {"verify", "self_evaluate"} <= set(nodes), "nothing is told before it is verified"
    answer = TurnAnswer.model_validate(events[-2][2])
    assert answer.outcome == "answered"
    assert "".join(str(data["text"]) for name, _, data in events if name == "token") == answer.answer.text
    assert answer.citations[0].doc_id == "errors.md"
    meta = answer.meta
    assert (meta.provider, meta.model, meta.degraded) == ("ollama", "simulated", ())
    assert meta.llm_calls == len(models.calls)
    assert meta.tokens["completion"] == sum(call.completion_tokens for call in models.calls)
    assert "answer.ru@" in meta.prompt_version


def test_usage_is_what_the_turn_spent(written: httpx.Client, models: Simulator) -> None:
    messages = [{"role": "user", "content": ANSWERABLE}]
    for streamed in (False, True):
        models.set_knobs(Knobs())
        response = written.post("/v1/chat/completions", json={"model": "ask", "messages": messages, "stream": streamed})
        lines = response.text.strip().split("\n\n")
        final = json.loads(lines[-2].removeprefix("data: ")) if streamed else response.json()
        assert not streamed or lines[-1] == "data: [DONE]"
        prompt, completion = (sum(getattr(call, f"{kind}_tokens") for call in models.calls) for kind in TOKENS)
        assert final["usage"] == {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        assert completion > 0


@pytest.mark.usefixtures("models")
def test_a_question_without_evidence_is_refused_without_a_model_call(written: httpx.Client, models: Simulator) -> None:
    assert [name for name, _, _ in stream(written, ABSENT)] == ["accepted", "result", "done"]
    assert not models.calls


SLOW = Knobs(tokens_per_second=3)


def test_disconnecting_cancels_the_model_call(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(SLOW)
    messages = [{"role": "user", "parts": [{"type": "text", "text": ANSWERABLE}]}]
    with written.stream("POST", "/ask/ui-messages", json={"messages": messages}) as response:
        lines = response.iter_lines()
        assert next(lines)
        wait_until(lambda: any(call.task == "answer" for call in models.calls))
    wait_until(lambda: all(call.outcome != "open" for call in models.calls))
    assert [call.outcome for call in models.calls if call.task == "answer"] == ["left"]


def test_a_reconnecting_client_resumes_its_running_stream(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(SLOW.model_copy(update={"tokens_per_second": 12}))
    seen = ""
    with written.stream("POST", "/ask/stream", json={"question": ANSWERABLE}) as response:
        for line in response.iter_lines():
            if line.startswith("id: "):
                seen = line.removeprefix("id: ")
                break
    wait_until(lambda: any(call.task == "answer" for call in models.calls))
    events = stream(written, ANSWERABLE, **{"Last-Event-ID": seen})
    assert [int(event_id.rpartition(":")[2]) for _, event_id, _ in events] == list(range(2, len(events) + 2))
    assert events[-1][0] == "done"
    assert [call.outcome for call in models.calls if call.task == "answer"] == ["ok"]


def test_without_models_answers_fall_back_to_quotations(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(Knobs(faults=(Fault(kind="500", times=20),)))
    response = written.post("/ask/run", json={"question": ANSWERABLE})
    answer = TurnAnswer.model_validate_json(response.content)
    assert (response.status_code, answer.outcome) == (200, "answered")
    assert (answer.meta.provider, answer.meta.model) == ("local", "extractive")
    assert "answer" in answer.meta.degraded
    assert json.loads(response.content)["meta"]["tokens"] == {"prompt": 0, "completion": 0, "total": 0}
