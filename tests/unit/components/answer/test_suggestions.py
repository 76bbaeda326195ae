"""Suggested questions: after a good answer only, short, new, and answered by the knowledge base."""

from dataclasses import replace

import pytest
from components.answer.citations import cite
from components.answer.units import units
from components.judge.local import LocalJudge
from haystack import Pipeline

from components.answer.suggestions import QuestionSuggester
from components.language.texts import LOCALES
from components.turn import Passage, Route, Turn, Verdict
from tests.turns import BrokenJudge, FixedJudge, passage, turn

USED = passage("Вода не сливается.", "used", doc_id="d", heading="Ошибки › E20")
OTHERS = [
    passage(f"Замена {part} стоит 900 рублей.", part, doc_id="d", heading=f"Ремонт › Замена {part}")
    for part in ("насоса", "фильтра", "люка", "шланга")
]


def answered(*others: Passage, route: Route = "auto", locale: str = "ru") -> Turn:
    given_turn = turn("E20", USED, *others)
    return replace(given_turn, draft=cite(units(USED)), verdict=Verdict(route), locale=locale)


def suggested(turn_before: Turn, suggester: QuestionSuggester | None = None) -> tuple[str, ...]:
    always = FixedJudge(dict.fromkeys([one.chunk_id for one in turn_before.evidence.passages], 1.0))
    return (suggester or QuestionSuggester(always)).run(turn_before)["turn"].reply.suggestions


@pytest.mark.parametrize("locale", LOCALES)
def test_related_topics_become_questions(locale: str) -> None:
    result = suggested(answered(*OTHERS, locale=locale))
    assert len(result) == 3
    assert len(set(result)) == 3
    assert all("Замена" in one and len(one) <= 60 for one in result)


def test_an_answered_topic_is_not_suggested() -> None:
    again = passage("Ещё о том же.", "again", doc_id="d", heading=USED.heading)
    assert suggested(answered(again)) == ()


@pytest.mark.parametrize("route", ["retry", "human", "error"])
def test_other_routes_get_no_suggestions(route: Route) -> None:
    assert suggested(answered(*OTHERS, route=route)) == ()


def test_without_a_draft_nothing_is_suggested() -> None:
    assert suggested(replace(answered(*OTHERS), draft=None)) == ()


def test_a_long_heading_is_no_question() -> None:
    assert suggested(answered(passage("Текст.", heading="Замена " + "очень " * 10 + "важной части"))) == ()


def test_a_heading_that_is_a_question_stays_one() -> None:
    assert suggested(answered(passage("Да.", heading="Можно ли вернуть?"))) == ("Можно ли вернуть?",)


def test_only_answerable_questions_are_suggested() -> None:
    judge = FixedJudge({"фильтра": 0.9, "насоса": 0.2})
    result = suggested(answered(*OTHERS), QuestionSuggester(judge))
    assert len(result) == 1
    assert "фильтра" in result[0]
    assert set(judge.asked) >= {"насоса", "фильтра"}


def test_the_local_judge_suggests_what_a_passage_answers() -> None:
    suggester = QuestionSuggester(LocalJudge(), threshold=0.3)
    for one in suggested(answered(*OTHERS), suggester):
        assert "Замена" in one


def test_a_failing_judge_suggests_nothing_and_keeps_the_turn() -> None:
    before = answered(*OTHERS)
    after = QuestionSuggester(BrokenJudge("relevance")).run(before)["turn"]
    assert after.reply.suggestions == ()
    assert after.draft == before.draft
    assert after.degraded == ("suggestions",)


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("suggest", QuestionSuggester(LocalJudge(), limit=2, threshold=0.7))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    parameters = again.to_dict()["components"]["suggest"]["init_parameters"]
    assert (parameters["limit"], parameters["threshold"]) == (2, 0.7)
