"""Both loops of the profiles with models keep the promises of the embedded one, whatever the models say."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import get_args

import pytest
from haystack import component
from hypothesis import given, settings
from hypothesis import strategies as st

from components.judge.appraiser import EvidenceAppraiser
from components.judge.evaluator import RetrievalEvaluator
from components.judge.grader import DocGrader
from components.judge.llm import LlmJudge
from components.judge.reviewer import AnswerReviewer
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
    judged_by,
    open_doors,
    run,
)

pytestmark = pytest.mark.usefixtures("empty_shop")

_CHUNKS = [f"{document}.{number}" for document in "abcde" for number in range(5)]
_SHOWN = {"answered", "partially_answered", "low_confidence"}
_DEPTH = 8


@component
class NotingReviewer:
    """Keeps every draft that the reviewer has scored."""

    def __init__(self, reviewer: AnswerReviewer) -> None:
        self.reviewer = reviewer
        self.drafts: list[Draft] = []

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        after: Turn = self.reviewer.run(turn)["turn"]
        assert after.draft is not None
        self.drafts.append(after.draft)
        return {"turn": after}


@dataclass
class Minds:
    """What the models reply, call by call; the last reply is repeated."""

    appraise: list[Reply]
    claims: list[Reply]
    evaluate: list[Reply]
    rewrite: list[Reply]
    script: Script
    endless: bool
    drafts: list[Draft] = field(default_factory=list)

    def play(self, quality: Quality) -> tuple[Turn, ScriptedModels]:
        """The turn at the end of the real pipeline, and what the models were asked."""
        models = ScriptedModels(
            appraise=self.appraise, claims=self.claims, evaluate=self.evaluate, rewrite=self.rewrite
        )
        judge, local = LlmJudge(models), ScriptedJudge(self.script)
        reviewer = NotingReviewer(AnswerReviewer(judge, local))
        final = run(
            Turn("t", "Вопрос о гарантии?", quality=quality),
            {
                **open_doors(),
                **{name: made for name, made in judged_by(local).items() if name == "suggest"},
                "rewrite": EndlessRewriter()
                if self.endless
                else QueryRewriter(writer=LlmQueryWriter(models, hyde=True)),
                "retrieve": ScriptedRetriever(self.script),
                "grade": DocGrader(local, depth=_DEPTH, threshold=0.05),
                "evaluate_retrieval": RetrievalEvaluator(local, threshold=0.2, worth_retrying=1.0),
                "appraise": EvidenceAppraiser(judge, local, depth=_DEPTH),
                "answer": CountingAnswerer(self.script),
                "review": reviewer,
            },
            YAML.with_name("ask.ollama.yaml"),
        )
        self.drafts = reviewer.drafts
        return final, models


percent = st.integers(0, 100)
nonsense = st.sampled_from([DOWN, "", "Не знаю.", "{}", '{"passages": 1}'])
topics = st.lists(st.sampled_from(["гарантия", "срок", "чек"]), max_size=2)


def _graded(count: int) -> st.SearchStrategy[Reply]:
    return st.builds(
        lambda answers, adequacy, missing: {
            "passages": [{"number": number, "answers": one} for number, one in enumerate(answers, 1)],
            "adequacy": adequacy,
            "missing": missing,
        },
        st.lists(st.booleans(), min_size=count, max_size=count),
        percent,
        topics,
    )


def _checked(count: int) -> st.SearchStrategy[Reply]:
    return st.builds(
        lambda found: {
            "claims": [{"number": n, "claim": "", "status": one, "quote": ""} for n, one in enumerate(found, 1)]
        },
        st.lists(st.sampled_from(["supported", "partially_supported", "unsupported"]), min_size=count, max_size=count),
    )


evaluations: st.SearchStrategy[Reply] = st.builds(
    lambda quality, answers, sure, missing: {
        "quality": max(1, quality),
        "answerability": answers,
        "confidence": sure,
        "missing": missing,
    },
    percent,
    st.sampled_from(["fully", "partially", "cannot"]),
    percent,
    topics,
)
written: st.SearchStrategy[Reply] = st.builds(lambda queries: {"queries": queries, "passage": "Такая статья."}, topics)
passes = st.builds(
    Pass,
    found=st.dictionaries(st.sampled_from(_CHUNKS), st.floats(0.01, 1.0), max_size=6),
    supported=st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
)
scripts = st.builds(
    Script, st.lists(passes, min_size=5, max_size=5), st.floats(0, 1).map(lambda one: dict.fromkeys(_CHUNKS, one))
)


def _replies(*forms: st.SearchStrategy[Reply]) -> st.SearchStrategy[list[Reply]]:
    return st.lists(st.one_of(nonsense, *forms), min_size=1, max_size=6)


minds = st.builds(
    Minds,
    _replies(*map(_graded, range(1, _DEPTH + 1))),
    _replies(*map(_checked, range(1, 4))),
    _replies(evaluations),
    _replies(written),
    scripts,
    st.booleans(),
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
    assert all(models.asked.count(step) <= 2 * final.passes for step in ("appraise", "claims", "evaluate", "rewrite"))
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


def _good(count: int) -> Minds:
    grades = [{"number": number, "answers": True} for number in range(1, count + 1)]
    return Minds(
        [{"passages": grades, "adequacy": 90, "missing": []}],
        [{"claims": [{"number": 1, "claim": "", "status": "supported", "quote": ""}]}],
        [{"quality": 90, "answerability": "fully", "confidence": 90, "missing": []}],
        [{"queries": ["срок гарантии"], "passage": ""}],
        Script(
            [Pass({"a.0": 0.9}), *[Pass({f"{document}.0": 0.8}) for document in "bcde"]], dict.fromkeys(_CHUNKS, 0.9)
        ),
        endless=False,
    )


def test_an_answer_takes_three_calls_one_after_the_other() -> None:
    final, models = _good(1).play("balanced")
    assert (final.outcome, final.degraded) == ("answered", ())
    assert models.asked[0] == "appraise"
    assert sorted(models.asked[1:]) == ["claims", "evaluate"], "beside the one that writes"


def test_a_hopeless_question_is_refused_without_a_call() -> None:
    minds = replace(_good(1), script=Script([Pass({"a.0": 0.9})], dict.fromkeys(_CHUNKS, 0.1)))
    final, models = minds.play("thorough")
    assert (final.outcome, models.asked, minds.script.answers) == ("refused", [], 0)


def test_models_that_are_all_down_leave_the_embedded_engine() -> None:
    down = replace(_good(1), appraise=[DOWN], claims=[DOWN], evaluate=[DOWN], rewrite=[DOWN])
    final, models = down.play("balanced")
    assert final.outcome == "answered"
    assert final.degraded == ("appraiser", "verifier", "self_evaluator")
    assert sorted(models.asked) == ["appraise", "claims", "evaluate"]


def test_a_retry_is_searched_with_what_a_model_writes() -> None:
    weak = {"passages": [{"number": 1, "answers": True}], "adequacy": 50, "missing": ["срок"]}
    found = {"passages": [{"number": n, "answers": True} for n in (1, 2)], "adequacy": 90, "missing": []}
    minds = replace(_good(1), appraise=[weak, found])
    final, models = minds.play("balanced")
    assert models.asked[:3] == ["appraise", "rewrite", "appraise"]
    assert (final.outcome, final.passes) == ("answered", 2)
    assert final.query.variants[0] == "срок гарантии"
    assert final.evidence.usable() == final.evidence.passages
