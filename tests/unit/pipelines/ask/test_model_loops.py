"""Both loops of the profiles with models keep the promises of the embedded one, whatever the models say."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from typing import get_args

import pytest
from components.judge.appraiser import EvidenceAppraiser
from components.judge.reviewer import DraftReviewer
from haystack import component
from haystack.dataclasses import ChatMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from components.answer.suggestions import QuestionSuggester
from components.judge.evaluator import RetrievalEvaluator
from components.judge.grader import DocGrader
from components.judge.llm import LlmJudge
from components.judge.self_evaluator import SelfEvaluator
from components.judge.verifier import FactVerifier
from components.turn import EXTRA_PASSES, Draft, Outcome, Quality, Turn
from components.understand.query_writer import LlmQueryWriter
from components.understand.rewrite import QueryRewriter
from pipelines.ask.engine import YAML
from tests.models import DOWN, Reply, ScriptedModels
from tests.unit.pipelines.ask.scripted import (
    CountingAnswerer,
    EndlessRewriter,
    Pass,
    Script,
    ScriptedJudge,
    ScriptedRetriever,
    ids,
    passing_steps,
    run,
)

pytestmark = pytest.mark.usefixtures("empty_shop")

_CHUNKS = [f"{document}.{number}" for document in "abcde" for number in range(5)]
_SHOWN = {"answered", "partially_answered"}
_DEPTH = 8
_PASSAGE = re.compile(r"^\[(\d+)\] source:", re.MULTILINE)
_CLAIM = re.compile(r"^(\d+)\. ", re.MULTILINE)
STEPS = ("appraise", "claims", "evaluate", "rewrite")


@component
class NotingEvaluator:
    """Keeps every draft that the evaluator has scored."""

    def __init__(self, evaluator: SelfEvaluator) -> None:
        self.evaluator = evaluator
        self.drafts: list[Draft] = []

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        after: Turn = self.evaluator.run(turn)["turn"]
        assert after.draft is not None
        self.drafts.append(after.draft)
        return {"turn": after}


@dataclass(frozen=True)
class Mood:
    """How a model replies to one call, whatever it is asked: `instead` of a form, or by these choices in one."""

    instead: Reply | None = None
    yes: tuple[bool, ...] = (True,)
    percent: int = 90
    topics: tuple[str, ...] = ()

    def said(self, step: str, messages: Sequence[ChatMessage]) -> Reply:
        """The form that the step asks for, filled in for all that the prompt numbers."""
        asked = messages[-1].text or ""
        if self.instead is not None:
            return self.instead
        if step == "appraise":
            grades = [{"number": n, "answers": yes} for n, yes in self._each(_PASSAGE, asked)]
            return {"passages": grades, "adequacy": self.percent, "missing": self.topics}
        if step == "claims":
            status = {True: "supported", False: "unsupported"}
            return {
                "claims": [
                    {"number": n, "claim": "", "status": status[yes], "quote": ""}
                    for n, yes in self._each(_CLAIM, asked)
                ]
            }
        if step == "evaluate":
            answers = "fully" if self.percent > 50 else "partially" if self.percent > 10 else "cannot"
            return {
                "quality": max(1, self.percent),
                "answerability": answers,
                "confidence": self.percent,
                "missing": self.topics,
            }
        return {"queries": self.topics, "passage": "Такая статья."}

    def _each(self, numbered: re.Pattern[str], asked: str) -> Iterator[tuple[int, bool]]:
        return zip(map(int, numbered.findall(asked)), cycle(self.yes), strict=False)


@dataclass
class Minds:
    """The moods of the models, call by call of each step; the last one stays."""

    script: Script
    endless: bool
    moods: Sequence[Mood] = (Mood(),)
    drafts: list[Draft] = field(default_factory=list)

    def play(self, quality: Quality) -> tuple[Turn, ScriptedModels]:
        """The turn at the end of the real pipeline, and what the models were asked."""
        models = ScriptedModels()

        def saying(step: str) -> Callable[[Sequence[ChatMessage]], Reply]:
            return lambda messages: self.moods[min(models.asked.count(step), len(self.moods) - 1)].said(step, messages)

        models.said = {step: saying(step) for step in STEPS}
        judge, local = LlmJudge(models), ScriptedJudge(self.script)
        evaluator = NotingEvaluator(SelfEvaluator(local))
        rewriter = QueryRewriter(writer=LlmQueryWriter(models, hyde=True))
        final = run(
            Turn("t", "Вопрос о гарантии?", quality=quality),
            {
                **passing_steps(),
                "rewrite": EndlessRewriter() if self.endless else rewriter,
                "retrieve": ScriptedRetriever(self.script),
                "grade": DocGrader(local, depth=_DEPTH, threshold=0.05, promising=0.2),
                "evaluate_retrieval": RetrievalEvaluator(
                    local, threshold=0.57, worth_retrying=0.3, appraiser=EvidenceAppraiser(judge, depth=_DEPTH)
                ),
                "answer": CountingAnswerer(self.script),
                "verify": FactVerifier(local, reviewer=DraftReviewer(judge)),
                "self_evaluate": evaluator,
                "suggest": QuestionSuggester(local),
            },
            YAML.parent / "profiles" / "ollama.yaml",
        )
        self.drafts = evaluator.drafts
        return final, models


percents = st.one_of(st.integers(0, 100), st.integers(75, 100), st.integers(40, 74))
topics = st.lists(st.sampled_from(["гарантия", "срок", "чек", "цена"]), max_size=3).map(tuple)
sensible = st.builds(
    Mood, st.none(), st.lists(st.booleans(), min_size=1, max_size=4).map(lambda one: (True, *one)), percents, topics
)
silent = st.builds(Mood, st.sampled_from([DOWN, "", "Не знаю.", "{}", '{"passages": 1}']))
passes = st.builds(
    Pass,
    found=st.dictionaries(st.sampled_from(_CHUNKS), st.floats(0.01, 1.0), min_size=1, max_size=6),
    supported=st.lists(st.booleans(), max_size=2).map(lambda more: (True, *more)),
)
scripts = st.builds(
    Script,
    st.lists(passes, min_size=5, max_size=5),
    st.one_of(st.floats(0.3, 1), st.floats(0, 1)).map(lambda one: dict.fromkeys(_CHUNKS, one)),
)
minds = st.builds(
    Minds, scripts, st.booleans(), st.lists(st.one_of(sensible, sensible, sensible, silent), min_size=1, max_size=6)
)


@settings(max_examples=20)
@given(minds, st.sampled_from(get_args(Quality)))
def test_the_loops_keep_their_promises(minds: Minds, quality: Quality) -> None:
    final, models = minds.play(quality)
    script = minds.script

    assert final.passes == len(script.seen) <= 1 + EXTRA_PASSES[quality]
    assert final.outcome in get_args(Outcome)
    assert final.outcome != "failed"
    assert final.reply.text or final.outcome in _SHOWN
    history = [*script.seen, ids(final)]
    for number, (before, after) in enumerate(pairwise(history), 1):
        assert before <= after
        assert before < after or number == final.passes
    assert all(models.asked.count(step) <= 2 * final.passes for step in STEPS)
    _best_draft_was_kept(minds, final)


def _best_draft_was_kept(minds: Minds, final: Turn) -> None:
    if not minds.drafts:
        assert final.best is None
        return
    best = max(minds.drafts, key=lambda one: (one.factuality, one.quality, one.relevance))
    assert final.best is not None
    assert (final.best.text, final.best.quality, final.best.factuality) == (best.text, best.quality, best.factuality)
    if final.outcome in _SHOWN:
        assert final.reply.text == best.text
        assert "выдумка" not in final.reply.text
        assert all(claim.status == "supported" for claim in best.claims)


ONE_EACH = [Pass({"a.0": 0.9}), *[Pass({f"{document}.0": 0.8}) for document in "bcde"]]
SURE = dict.fromkeys(_CHUNKS, 0.9)


def test_an_answer_takes_three_calls_one_after_the_other() -> None:
    final, models = Minds(Script(ONE_EACH, SURE), endless=False).play("balanced")
    assert (final.outcome, final.degraded) == ("answered", ())
    assert models.asked[0] == "appraise"
    assert sorted(models.asked[1:]) == ["claims", "evaluate"], "beside the one that writes"


def test_a_hopeless_question_is_refused_without_a_call() -> None:
    minds = Minds(Script(ONE_EACH, dict.fromkeys(_CHUNKS, 0.1)), endless=False)
    final, models = minds.play("thorough")
    assert (final.outcome, models.asked, minds.script.answers) == ("refused", [], 0)


def test_models_that_are_all_down_leave_the_embedded_engine() -> None:
    final, models = Minds(Script(ONE_EACH, SURE), endless=False, moods=[Mood(DOWN)]).play("balanced")
    assert final.outcome == "answered"
    assert final.degraded == ("appraiser", "verifier", "self_evaluator")
    assert sorted(models.asked) == ["appraise", "claims", "evaluate"]


def test_a_retry_is_searched_with_what_a_model_writes() -> None:
    moods = [Mood(percent=50, topics=("срок гарантии",)), Mood(percent=90)]
    final, models = Minds(Script(ONE_EACH, SURE), endless=False, moods=moods).play("balanced")
    assert models.asked[:3] == ["appraise", "rewrite", "appraise"]
    assert (final.passes, final.query.variants[0]) == (2, "срок гарантии")
    assert final.evidence.relevant_passages() == final.evidence.passages


@pytest.mark.parametrize("quality", get_args(Quality))
def test_the_budget_is_spent_while_it_brings_something(quality: Quality) -> None:
    weak = Minds(Script(ONE_EACH, SURE), endless=True, moods=[Mood(percent=60, topics=("срок",))])
    final, _ = weak.play(quality)
    assert final.passes == final.max_passes
    poor = Minds(Script(ONE_EACH, SURE), endless=True, moods=[Mood(percent=74)])
    final, _ = poor.play(quality)
    assert final.passes == final.max_passes
    assert len(poor.drafts) == final.max_passes


def test_a_claim_that_the_model_finds_nowhere_is_not_shown() -> None:
    script = Script([Pass({"a.0": 0.9}, supported=(True, True))] * 5, SURE)
    final, _ = Minds(script, endless=True, moods=[Mood(yes=(True, False))]).play("quick")
    assert final.best is not None
    assert (len(final.best.claims), final.best.factuality) == (1, 50.0)
    assert final.outcome == "low_confidence"


def test_a_worse_draft_of_a_later_pass_is_not_the_answer() -> None:
    minds = Minds(Script(ONE_EACH, SURE), endless=True, moods=[Mood(percent=79), Mood(percent=76)])
    final, _ = minds.play("balanced")
    assert [draft.quality for draft in minds.drafts] == [79, 76, 76]
    assert final.best is not None
    assert final.best.quality == 79
    assert final.best.text == minds.drafts[0].text
