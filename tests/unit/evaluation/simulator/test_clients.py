"""The simulator as seen by the real clients of both protocols."""

import json
from collections.abc import Iterator
from math import fsum

import httpx
import ollama
import openai
import pytest
from typer.testing import CliRunner

from components.answer.generative import AnswerForm, SentenceForm
from components.models.structured import parsed
from evaluation.simulator.__main__ import app
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator

PASSAGES = """<passages id="ab12">
[1] source: errors.md › E20
Код E20 означает, что вода не сливается. Что делать при E20:
1. Выключите машину.
2. Промойте фильтр.
[2] source: returns.md
Товар можно вернуть в течение 14 дней.
</passages id="ab12">"""
QUESTION = '<question id="ab12">\n{}\n</question id="ab12">'
E20 = "Что означает ошибка E20?"
ANSWER = AnswerForm.model_json_schema()


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Simulator, str]]:
    with simulator_thread() as started:
        yield started


@pytest.fixture
def simulator(running: tuple[Simulator, str]) -> Simulator:
    running[0].set_knobs(Knobs())
    return running[0]


@pytest.fixture
def native(running: tuple[Simulator, str]) -> Iterator[ollama.Client]:
    with ollama.Client(running[1], timeout=10) as client:
        yield client


@pytest.fixture
def compatible(running: tuple[Simulator, str]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{running[1]}/v1", api_key="none", max_retries=0, timeout=10) as client:
        yield client


def prompt(question: str = E20, *, more: str = "") -> str:
    return "\n\n".join(filter(None, (PASSAGES, more, QUESTION.format(question))))


def chat_text(client: ollama.Client, text: str, schema: dict[str, object] | None = None) -> str:
    reply = client.chat("simulated", [{"role": "user", "content": text}], format=schema)
    return reply.message.content or ""


def listed(name: str, **properties: object) -> dict[str, object]:
    items = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {name: {"type": "array", "items": items}}}


@pytest.mark.parametrize(("model", "dimensions"), [("bge-m3", 1024), ("bge-m3:latest", 1024), ("simulated-embed", 384)])
def test_vectors_are_as_long_as_those_of_the_model(
    simulator: Simulator, native: ollama.Client, model: str, dimensions: int
) -> None:
    assert len(native.embed(model, "pump").embeddings[0]) == dimensions


def test_unknown_knobs_are_refused_in_one_line() -> None:
    shown = CliRunner().invoke(app, ["--knobs", '{"bogus": 1}'])
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1
    assert "bogus" in shown.stderr
    assert "tokens_per_second" in shown.stderr


def test_a_streamed_reply_equals_the_whole_one(simulator: Simulator, native: ollama.Client) -> None:
    parts = list(native.chat("simulated", [{"role": "user", "content": prompt()}], stream=True))

    assert len(parts) > 5
    assert "".join(part.message.content or "" for part in parts) == chat_text(native, prompt())
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == len(parts) - 1
    assert (parts[-1].prompt_eval_count or 0) > 20


def test_both_protocols_give_the_same_reply(simulator: Simulator, compatible: openai.OpenAI) -> None:
    completion = compatible.chat.completions.create(model="simulated", messages=[{"role": "user", "content": prompt()}])
    stream = compatible.chat.completions.create(
        model="simulated",
        messages=[{"role": "user", "content": prompt()}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    assert streamed == completion.choices[0].message.content == "Код E20 означает, что вода не сливается. [1]"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage == completion.usage
    assert compatible.models.list().data[0].id == "simulated"


def test_the_openai_protocol_respects_a_schema(simulator: Simulator, compatible: openai.OpenAI) -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"adequacy": {"type": "integer", "minimum": 0, "maximum": 100}},
    }
    reply = compatible.chat.completions.create(
        model="simulated",
        messages=[{"role": "user", "content": prompt()}],
        response_format={"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
    )

    assert 50 <= json.loads(reply.choices[0].message.content or "")["adequacy"] <= 100


def test_similar_texts_have_near_embeddings(
    simulator: Simulator, native: ollama.Client, compatible: openai.OpenAI
) -> None:
    one, two, other = native.embed("simulated-embed", ["вернуть товар", "возврат товара", "код ошибки"]).embeddings
    listed = compatible.embeddings.create(model="simulated-embed", input="вернуть товар").data[0].embedding

    assert fsum(a * a for a in one) == pytest.approx(1)
    assert fsum(a * b for a, b in zip(one, two, strict=True)) > fsum(a * b for a, b in zip(one, other, strict=True))
    assert listed == pytest.approx(one, abs=1e-6)


def test_an_unknown_model_is_reported_as_such(
    simulator: Simulator, native: ollama.Client, compatible: openai.OpenAI
) -> None:
    with pytest.raises(ollama.ResponseError, match="not found"):
        native.chat("llama", [{"role": "user", "content": "?"}])
    with pytest.raises(openai.NotFoundError):
        compatible.chat.completions.create(model="llama", messages=[{"role": "user", "content": "?"}])
    assert [model.model for model in native.list().models] == list(Knobs().models)


def test_it_serves_as_a_tool(running: tuple[Simulator, str], simulator: Simulator) -> None:
    def asked() -> bytes:
        return httpx.post(f"{running[1]}/tool", json={"order": "AB-12"}).content

    assert json.loads(asked()) == {"order": "AB-12", "state": "передан в доставку", "day": "01.12.2026"}
    simulator.set_knobs(Knobs(faults=(Fault(kind="truncated", task="tool"),)))
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(asked())


@pytest.mark.parametrize("path", ["/tool", "/api/embed"])
def test_a_slow_reply_keeps_streaming(running: tuple[Simulator, str], simulator: Simulator, path: str) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="slow"),)))

    with httpx.stream("POST", running[1] + path, json={"input": "?"}) as reply:
        assert next(reply.iter_bytes()) == b" "


@pytest.mark.parametrize("kind", ["refused", "noise", "cut_off", "500", "429"])
def test_a_broken_reply_is_an_error_of_the_client(simulator: Simulator, native: ollama.Client, kind: str) -> None:
    simulator.set_knobs(Knobs.model_validate({"faults": [{"kind": kind}]}))

    with pytest.raises((ollama.ResponseError, httpx.HTTPError, ConnectionError, ValueError)):
        list(native.chat("simulated", [{"role": "user", "content": prompt()}], stream=True))
    assert simulator.calls[0].outcome == kind


def test_a_reply_can_have_wrong_content(simulator: Simulator, native: ollama.Client) -> None:
    honest = chat_text(native, prompt(), ANSWER)
    texts = {}
    for kind in ("truncated", "garbage", "empty", "refusal", "wrong_schema", "injected", "invented", "sloppy"):
        simulator.set_knobs(Knobs.model_validate({"faults": [{"kind": kind}]}))
        texts[kind] = chat_text(native, prompt(), ANSWER)

    assert len({honest, *texts.values()}) == 9
    assert honest.startswith(texts["truncated"])
    assert texts["empty"] == ""
    assert "evil.example" in texts["injected"]
    (said,) = json.loads(honest)["sentences"]
    assert [one == said for one in json.loads(texts["invented"])["sentences"]] == [False, True, False]
    assert parsed(AnswerForm, texts["sloppy"]).sentences.count(SentenceForm(**said)) == 2


def evaluated(client: ollama.Client, inputs: str) -> object:
    example = 'Inputs:\n{"questions": "?", "contexts": ["!"]}\nOutputs:\n{}'
    text = f"Instructions:\nJudge.\n\nExamples:\n{example}\n\nInputs:\n{inputs}\nOutputs:"
    reply = client.chat("simulated", [{"role": "user", "content": text}], format="json")
    return json.loads(reply.message.content or "")


CONTEXTS = ["Товар можно вернуть в течение 14 дней.\nПришлите 'чек'.", "Код E20 означает, что вода не сливается."]
FAITHFUL = (
    f'{{"questions": За сколько дней?, "contexts": {CONTEXTS}, '
    '"predicted_answers": Товар можно вернуть в течение 14 дней. Деньги вернутся за 3 дня.}'
)


def test_it_answers_haystack_evaluators(simulator: Simulator, native: ollama.Client) -> None:
    assert evaluated(native, FAITHFUL) == {
        "statements": ["Товар можно вернуть в течение 14 дней.", "Деньги вернутся за 3 дня."],
        "statement_scores": [1, 0],
    }
    prompt_form = '{{"questions": {}, "contexts": {}}}'
    assert evaluated(native, prompt_form.format("За сколько дней можно вернуть товар?", CONTEXTS)) == {
        "relevant_statements": ["Товар можно вернуть в течение 14 дней."]
    }
    for nothing in (prompt_form.format("Что означает E25?", CONTEXTS), prompt_form.format("Что означает E20?", [])):
        assert evaluated(native, nothing) == {"relevant_statements": []}
    assert [call.task for call in simulator.calls] == ["faithfulness", "relevance", "relevance", "relevance"]
    simulator.set_knobs(Knobs(faults=(Fault(kind="injected", task="faithfulness"),)))
    assert evaluated(native, FAITHFUL) == {
        "statements": ["Товар можно вернуть в течение 14 дней.", "Деньги вернутся за 3 дня."],
        "statement_scores": [1, 1],
    }


def test_a_fault_occurs_at_the_configured_calls(simulator: Simulator, native: ollama.Client) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="empty", task="answer", after=1, times=1),)))

    assert [bool(chat_text(native, prompt())) for _ in range(3)] == [True, False, True]
    assert [call.outcome for call in simulator.calls] == ["ok", "empty", "ok"]


def test_a_disconnecting_client_ends_its_call(running: tuple[Simulator, str], simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="hang"),)))
    with ollama.Client(running[1], timeout=0.05) as hasty, pytest.raises(httpx.ReadTimeout):
        chat_text(hasty, prompt())
    simulator.set_knobs(Knobs(tokens_per_second=1))
    with ollama.Client(running[1], timeout=5) as client:
        parts = client.chat("simulated", [{"role": "user", "content": prompt()}], stream=True)
        next(iter(parts))
        parts.close()
        assert httpx.get(f"{running[1]}/simulator").json()["calls"][0]["outcome"] in ("open", "left")


def test_knobs_are_set_while_it_runs(running: tuple[Simulator, str], simulator: Simulator) -> None:
    refused = httpx.post(f"{running[1]}/simulator", json={"no_such_knob": 1})
    taken = httpx.post(f"{running[1]}/simulator", json={"first_token_ms": 5, "faults": [{"kind": "500"}]})

    assert (refused.status_code, taken.status_code) == (422, 200)
    assert simulator.knobs == Knobs(first_token_ms=5, faults=(Fault(kind="500"),))


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe"])
def test_an_invalid_request_is_refused(running: tuple[Simulator, str], simulator: Simulator, body: bytes) -> None:
    assert httpx.post(f"{running[1]}/api/chat", content=body).status_code == 400
    assert httpx.get(f"{running[1]}/nowhere").status_code == 404
