"""What the README says of the profiles with models, done by editing YAML alone, and asked."""

import re
from contextlib import closing
from pathlib import Path

import pytest

from components.models.calls import Call, opened
from components.retrieve.model_reranker import ModelReranker
from components.turn import Turn
from evaluation.simulator.running import simulated
from pipelines.ask.engine import YAML, AskEngine
from pipelines.lint import lint
from settings import ROOT

pytestmark = pytest.mark.usefixtures("shop")

_MODEL = re.compile(r"model: [^\s,}]+")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROFILE = YAML.with_name("ask.ollama.yaml").read_text(encoding="utf-8")


def guide(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```yaml\n(.*?)```\n<!-- /{name} -->", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def edited(old: str, new: str) -> str:
    source, times = re.subn(old, lambda _: new, PROFILE, count=1, flags=re.DOTALL)
    assert times == 1
    assert lint(source) == []
    return source


def thorough() -> str:
    """The guide's two lines in place of those of `appraise`, and its judge at `review`."""
    judge, threshold = guide("thorough").splitlines(keepends=True)
    old_judge = "      judge: {type: components.judge.llm.LlmJudge, init_parameters: {models: *models}}\n"
    old_threshold = "      threshold: 0.75 # least adequacy to answer\n"
    assert PROFILE.count(old_judge) == 2
    assert PROFILE.count(old_threshold) == 1
    source = PROFILE.replace(old_judge, judge).replace(old_threshold, threshold)
    assert lint(source) == []
    return source


def asked(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[AskEngine, Turn, tuple[Call, ...]]:
    """The demo question through this profile, its models simulated."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with simulated() as (_, url):
        path = tmp_path / "ask.yaml"
        path.write_text(_MODEL.sub("model: simulated", _ADDRESS.sub(url, source)), encoding="utf-8")
        with closing(AskEngine(path)) as engine, opened() as calls:
            return engine, engine.run(Turn("t", "Стиральная машина показывает ошибку E20, что делать?")), calls.made


def test_another_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(r"              fast:\n.*?(?=              strong:)", guide("provider"))
    _, turn, made = asked(source, tmp_path, monkeypatch)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert {call.provider for call in made} == {"openai"}


def test_thorough_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, turn, made = asked(thorough(), tmp_path, monkeypatch)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert {call.step: call.tier for call in made if call.step != "answer"} == {
        "appraise": "strong",
        "claims": "strong",
        "evaluate": "strong",
    }


def test_a_stock_ranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(r"  rerank:\n.*?\n(?=\n)", guide("ranker"))
    engine, turn, _ = asked(source, tmp_path, monkeypatch)
    assert isinstance(engine.pipeline.get_component("rerank"), ModelReranker)
    assert (turn.outcome, turn.degraded) == ("answered", ())
