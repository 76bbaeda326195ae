"""The profiles with models as they are deployed, over a real index and a model server that is simulated."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from haystack.tracing.tracer import disable_tracing

from components.judge.claims import check_cited
from components.models.calls import Call, opened
from components.turn import Turn
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs, Task
from evaluation.simulator.running import simulated
from evaluation.simulator.server import Simulator
from pipelines.ask.engine import AskEngine

pytestmark = pytest.mark.usefixtures("shop")

Deployed: TypeAlias = tuple[AskEngine, Simulator]
E20 = Turn("t", "Стиральная машина показывает ошибку E20, что делать?")


@pytest.fixture(scope="module", params=["ollama", "openai"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with simulated() as (simulator, url), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        pipelines = adapt(tmp_path_factory.mktemp("pipelines"), url, request.param)
        with closing(AskEngine(pipelines / "ask" / f"ask.{request.param}.yaml")) as engine:
            yield engine, simulator
    disable_tracing()


def ask(deployed: Deployed, turn: Turn, *faults: Fault) -> tuple[Turn, tuple[Call, ...]]:
    engine, simulator = deployed
    simulator.knobs = Knobs(faults=faults)
    with opened() as calls:
        return engine.run(turn), calls.made


def test_an_answer_takes_three_calls_one_after_the_other_and_stands_on_what_it_cites(deployed: Deployed) -> None:
    turn, made = ask(deployed, E20)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert sorted(call.step for call in made) == ["answer", "appraise", "claims", "evaluate"]
    assert all(call.outcome == "ok" for call in made)
    assert turn.draft is not None
    cited = {citation.index: citation.passage for citation in turn.draft.citations}
    for claim in turn.draft.claims:
        assert claim.text in turn.reply.text
        assert check_cited(claim.text, [cited[index] for index in claim.citations]).status == "supported"


def test_a_refusal_calls_no_model(deployed: Deployed) -> None:
    turn, made = ask(deployed, Turn("t", "Что означает ошибка E401 на стиральной машине?"))
    assert (turn.outcome, made) == ("refused", ())


def test_models_read_the_question_as_it_was_meant(deployed: Deployed) -> None:
    turn, made = ask(deployed, Turn("t", "jib,rf t20"))
    assert turn.outcome in {"answered", "low_confidence"}
    assert turn.draft is not None
    assert {citation.passage.doc_id for citation in turn.draft.citations} == {"errors_e10_e30.md"}
    assert made


@pytest.mark.parametrize(
    ("task", "degraded", "step"),
    [
        ("appraise", "appraiser", "appraise"),
        ("review", "verifier", "claims"),
        ("evaluate", "self_evaluator", "evaluate"),
    ],
)
def test_a_judge_that_speaks_another_language_is_asked_twice_and_done_without(
    deployed: Deployed, task: Task, degraded: str, step: str
) -> None:
    turn, made = ask(deployed, E20, Fault(kind="wrong_schema", task=task))
    assert (turn.outcome, turn.degraded) == ("answered", (degraded,))
    assert [call.step for call in made].count(step) == 2


def test_a_second_draft_takes_no_call_more_in_sequence(deployed: Deployed, tmp_path: Path) -> None:
    engine, simulator = deployed
    described = engine.pipeline.to_dict()
    answer, review = (described["components"][name] for name in ("answer", "review"))
    review["init_parameters"]["second"] = {
        **answer,
        "init_parameters": {**answer["init_parameters"], "temperature": 0.9},
    }
    path = tmp_path / "ask.yaml"
    path.write_text(yaml.safe_dump(described), encoding="utf-8")
    with closing(AskEngine(path)) as again:
        turn, made = ask((again, simulator), E20)
    assert turn.outcome == "answered"
    assert turn.draft is not None
    assert turn.draft.agreement == 1.0
    assert "agreement" in {gate.name for gate in turn.verdict.gates}
    assert [call.step for call in made].count("answer") == 2
