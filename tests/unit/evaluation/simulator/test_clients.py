"""The simulator as seen by the real clients of both protocols."""

import json
from collections.abc import Iterator
from pathlib import Path

import ollama
import openai
import pytest
import yaml
from typer.testing import CliRunner

from components.answer.generative import AnswerForm, GenerativeAnswerer, SentenceForm
from components.models.structured import parsed
from evaluation.simulator.__main__ import app
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator, listening
from pipelines.ask.engine import AskEngine
from settings import ROOT

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


def test_unknown_knobs_are_refused_in_one_line() -> None:
    shown = CliRunner().invoke(app, ["--knobs", '{"bogus": 1}'])
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1
    assert "bogus" in shown.stderr
    assert "tokens_per_second" in shown.stderr


def test_a_port_in_use_is_refused_in_one_line() -> None:
    with listening("127.0.0.1", 0) as taken:
        shown = CliRunner().invoke(app, ["--port", str(taken.getsockname()[1])])
    assert shown.exit_code == 1
    assert shown.stderr.count("\n") == 1
    assert "Choose another" in shown.stderr


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


def test_a_fault_occurs_at_the_configured_calls(simulator: Simulator, native: ollama.Client) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="empty", task="answer", after=1, times=1),)))

    assert [bool(chat_text(native, prompt())) for _ in range(3)] == [True, False, True]
    assert [call.outcome for call in simulator.calls] == ["ok", "empty", "ok"]


@pytest.mark.parametrize("profile", ["ollama", "openai"])
def test_an_adapted_profile_changes_only_its_models(profile: str, tmp_path: Path) -> None:
    adapted_path = adapt(tmp_path, "http://127.0.0.1:9", profile, timeout=2) / "ask" / "profiles" / f"{profile}.yaml"
    shipped_path = ROOT / "pipelines" / "ask" / "profiles" / adapted_path.name

    changed, original = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (adapted_path, shipped_path))
    assert changed.keys() == original.keys()
    assert changed["components"].keys() == original["components"].keys()
    answerer = AskEngine(adapted_path).pipeline.get_component("answer")
    assert isinstance(answerer, GenerativeAnswerer)
    models = answerer.models
    assert models.strong is not None
    assert (models.timeout, models.fast.model, models.strong.model) == (2, "simulated", "simulated-strong")
    assert "127.0.0.1:9" in str(models.to_dict())
    assert "11434" not in adapted_path.read_text(encoding="utf-8")
