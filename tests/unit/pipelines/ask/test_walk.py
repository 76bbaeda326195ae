"""A walk ends where Haystack's own scheduler ends."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from haystack import Pipeline, component
from haystack.core.component import Component
from haystack.core.errors import PipelineMaxComponentRuns, PipelineRuntimeError
from haystack.tracing.tracer import disable_tracing, enable_tracing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.turn import Quality, Turn
from pipelines.ask.engine import YAML
from pipelines.ask.steps import StepTracer, noting
from pipelines.ask.walk import Walk
from tests.generated import texts

pytestmark = pytest.mark.usefixtures("shop")


@pytest.fixture(scope="module")
def deployed() -> Iterator[Pipeline]:
    pipeline = Pipeline.loads(YAML.read_text(encoding="utf-8"), allowed_modules=["components"])
    pipeline.warm_up()
    enable_tracing(StepTracer())
    yield pipeline
    disable_tracing()


_WORDS = "ошибка E20 E21 гарантия вернуть товар деньги пароль как сколько оператор вода насос".split()
questions = st.one_of(texts, st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6).map(" ".join))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions, st.sampled_from(["quick", "thorough"]))
def test_both_ways_of_running_the_pipeline_end_alike(deployed: Pipeline, question: str, quality: Quality) -> None:
    walk = Walk.through(deployed, "guard", "outcome")
    assert walk is not None
    turn = Turn("t", question, quality=quality)
    walk.run(turn)  # both find the same searches kept then
    with noting() as scheduled:
        expected = deployed.run({"guard": {"turn": turn}})["outcome"]["turn"]
    with noting() as walked:
        assert walk.run(turn) == expected
    assert [(step.label, step.component, step.sent) for step in walked.taken] == [
        (step.label, step.component, step.sent) for step in scheduled.taken
    ]


@component
class _Step:
    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    @component.output_types(turn=Turn, other=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        if self.fails:
            raise ValueError(turn.turn_id)
        return {"turn": replace(turn, passes=turn.passes + 1)}


@component
class _Needy:
    @component.output_types(turn=Turn)
    def run(self, turn: Turn, limit: int) -> dict[str, Turn]:
        return {"turn": replace(turn, passes=limit)}


def _made(**steps: Component) -> Pipeline:
    pipeline = Pipeline(max_runs_per_component=3)
    for name, step in steps.items():
        pipeline.add_component(name, step)
    return pipeline


def test_a_turn_that_is_sent_nowhere_comes_back_as_far_as_it_came() -> None:
    pipeline = _made(first=_Step(), last=_Step())
    pipeline.connect("first.other", "last.turn")
    walk = Walk.through(pipeline, "first", "last")
    assert walk is not None
    assert walk.run(Turn("t", "q")).passes == 1


def test_a_loop_without_end_is_ended() -> None:
    pipeline = _made(first=_Step(), second=_Step())
    pipeline.connect("first.turn", "second.turn")
    pipeline.connect("second.turn", "first.turn")
    walk = Walk.through(pipeline, "first", "none")
    assert walk is not None
    with pytest.raises(PipelineMaxComponentRuns, match="'first'"):
        walk.run(Turn("t", "q"))


def test_what_a_step_raises_is_the_cause() -> None:
    walk = Walk.through(_made(first=_Step(fails=True)), "first", "first")
    assert walk is not None
    with pytest.raises(PipelineRuntimeError) as raised:
        walk.run(Turn("t", "q"))
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_step_that_needs_more_than_the_turn_is_left_to_the_scheduler() -> None:
    assert Walk.through(_made(first=_Needy()), "first", "first") is None


def test_a_turn_sent_to_two_at_once_is_left_to_the_scheduler() -> None:
    pipeline = _made(first=_Step(), left=_Step(), right=_Step())
    pipeline.connect("first.turn", "left.turn")
    pipeline.connect("first.turn", "right.turn")
    assert Walk.through(pipeline, "first", "left") is None
