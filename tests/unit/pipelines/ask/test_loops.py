"""Retrieval passes: within the budget, ended by a pass without new results, and no document is lost."""

import re
from collections.abc import Mapping, Sequence
from typing import get_args

import pytest
from haystack.dataclasses import ChatMessage
from hypothesis import given
from hypothesis import strategies as st

from components.turn import Exchange, Outcome, Quality
from tests.models import DOWN, Reply, Said, ScriptedModels
from tests.unit.pipelines.ask.scripted import QUESTION, Pass, play, text_of

pytestmark = pytest.mark.usefixtures("empty_shop")

QUALITIES: tuple[Quality, ...] = get_args(Quality)
EMBEDDED = {"quick": 1, "balanced": 2, "thorough": 4}
WITH_MODELS = {"quick": 1, "balanced": 1, "thorough": 3}
WEAK = 0.3
"""Relevance that is too little for an answer and enough for another pass."""
GOOD = 0.9
NEW_EVERY_TIME = [{name: WEAK} for name in "abcde"]
SHOWN = {"answered", "partially_answered"}

ALL_FINE: Mapping[str, Reply] = {
    "answer": {
        "covers": "fully",
        "sentences": [{"text": text_of("a"), "cites": [1]}],
        "missing": [],
        "options": [],
        "see": [],
    },
    "claims": {"claims": [{"number": 1, "status": "supported", "quote": ""}]},
    "evaluate": {"why": "", "answerability": "fully", "relevance": 100, "quality": 90, "missing": []},
    "condense": {"question": QUESTION},
    "rewrite": {"queries": ["срок доставки"], "passage": ""},
}
GRADED = {"adequacy": 90, "missing": []}
PARTLY = {"why": "", "answerability": "partially", "relevance": 100, "quality": 70, "missing": ["доставка"]}


def models(**said: Said) -> ScriptedModels:
    """Models that answer well unless `said` replaces a step; every passage is graded YES."""

    def grades(messages: Sequence[ChatMessage]) -> Reply:
        numbers = re.findall(r"^\[(\d+)\]", messages[-1].text or "", re.MULTILINE)
        return {"passages": [{"number": one, "answers": True} for one in map(int, numbers)], **GRADED}

    return ScriptedModels(**{**ALL_FINE, "grade": grades, **said})


@pytest.mark.parametrize("quality", QUALITIES)
def test_weak_evidence_is_searched_for_until_the_budget_is_spent(quality: Quality) -> None:
    turn, retriever = play(NEW_EVERY_TIME, quality)
    assert turn.passes == turn.max_passes == len(retriever.searched) == EMBEDDED[quality]
    assert all(searched == [QUESTION, "доставкой"] for searched in retriever.searched[1:])


@pytest.mark.parametrize("quality", QUALITIES)
def test_an_answer_to_a_part_is_completed_while_the_budget_lasts(quality: Quality) -> None:
    turn, retriever = play(NEW_EVERY_TIME, quality, models(evaluate=PARTLY))
    assert turn.passes == turn.max_passes == len(retriever.searched) == WITH_MODELS[quality]
    assert (turn.outcome, turn.draft.missing if turn.draft else None) == ("partially_answered", ("доставка",))
    assert all(searched == [QUESTION, "срок доставки", "доставка"] for searched in retriever.searched[1:])


def test_a_pass_that_finds_nothing_new_is_the_last_one() -> None:
    turn, _ = play([{"a": WEAK}], "thorough")
    assert (turn.passes, turn.outcome) == (2, "low_confidence")
    turn, _ = play([{"a": WEAK}], "thorough", models(evaluate=PARTLY))
    assert (turn.passes, turn.outcome) == (2, "partially_answered")


def test_a_full_answer_takes_one_pass() -> None:
    turn, _ = play([{"a": GOOD}], "thorough")
    assert (turn.passes, turn.outcome) == (1, "answered")
    turn, _ = play([{"a": GOOD}], "thorough", models())
    assert (turn.passes, turn.outcome) == (1, "answered")


def test_hopeless_evidence_is_refused_at_once() -> None:
    turn, _ = play([{"a": 0.1, "b": 0.05}], "thorough")
    assert (turn.passes, turn.outcome, turn.reason) == (1, "refused", "no_relevant_context")
    assert turn.draft is None


def test_a_worse_answer_of_a_later_pass_is_not_shown() -> None:
    worse = {"why": "", "answerability": "cannot", "relevance": 10, "quality": 5, "missing": ["доставка"]}
    turn, _ = play(NEW_EVERY_TIME, "thorough", models(evaluate=[PARTLY, worse]))
    assert (turn.passes, turn.outcome) == (3, "partially_answered")
    assert turn.draft is not None
    assert turn.draft.quality == 70


def test_the_choices_of_a_model_are_put_to_the_visitor_once() -> None:
    unclear = {"covers": "none", "sentences": [], "missing": [], "options": ["Волна", "Бриз"], "see": []}
    turn, _ = play([{"a": GOOD}], models=models(answer=unclear))
    assert (turn.outcome, turn.reply.clarification) == ("clarify", ("Волна", "Бриз"))
    again, _ = play([{"a": GOOD}], models=models(answer=unclear), history=[Exchange("Гарантия?", "clarify")])
    assert (again.outcome, again.reply.clarification) == ("low_confidence", None)


passes = st.lists(
    st.dictionaries(st.sampled_from("abcdefghij"), st.one_of(st.floats(0, 1), st.just(WEAK)), max_size=6),
    min_size=4,
    max_size=4,
)
evaluations = st.builds(
    lambda answerability, quality, missing: {
        "why": "",
        "answerability": answerability,
        "relevance": quality,
        "quality": quality,
        "missing": missing,
    },
    st.sampled_from(["fully", "partially", "cannot"]),
    st.integers(1, 100),
    st.lists(st.sampled_from(["доставка", "цена"]), max_size=2),
)
verdicts = st.builds(
    lambda status: {"claims": [{"number": 1, "status": status, "quote": ""}]},
    st.sampled_from(["supported", "unsupported"]),
)
said = st.fixed_dictionaries(
    {
        "evaluate": st.lists(st.one_of(evaluations, st.just(DOWN)), min_size=1, max_size=3),
        "claims": st.lists(st.one_of(verdicts, st.just(DOWN)), min_size=1, max_size=3),
        "answer": st.one_of(st.just(ALL_FINE["answer"]), st.just(DOWN)),
        "rewrite": st.one_of(st.just(ALL_FINE["rewrite"]), st.just(DOWN)),
    }
)


@given(passes, st.sampled_from(QUALITIES), st.one_of(st.none(), said))
def test_every_turn_ends_in_one_outcome_within_its_budget(
    passes: list[Pass], quality: Quality, said: Mapping[str, Said] | None
) -> None:
    turn, retriever = play(passes, quality, models(**said) if said is not None else None)
    assert turn.outcome in get_args(Outcome)
    assert turn.outcome != "failed"
    assert turn.reply.text
    assert turn.passes == len(retriever.searched) <= turn.max_passes == (WITH_MODELS if said else EMBEDDED)[quality]
    found = [set(one) for one in passes[: turn.passes]]
    assert {one.chunk_id for one in turn.evidence.passages} == set().union(*found)
    assert all(one - set().union(*found[:place]) for place, one in enumerate(found[:-1]))
    if turn.outcome in SHOWN:
        assert turn.draft is not None
        assert all(claim.status == "supported" for claim in turn.draft.claims)
        assert turn.reply.text == turn.draft.text
