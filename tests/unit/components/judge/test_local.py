"""The deterministic judge: probabilities that order passages rightly, and identifiers to the letter."""

from dataclasses import replace

import pytest
from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.grader import DocGrader
from components.judge.relevance import SCORE
from components.turn import Citation, Claim, Draft, Evidence, Passage, Query, SelfEvaluation, Turn
from tests.generated import lines, texts
from tests.turns import passage, query

E20 = passage("Код E20 означает, что вода не сливается. Очистите фильтр.", "e20", heading="E20")
E25 = passage("Код E25 означает, что насос заблокирован. Очистите фильтр.", "e25", heading="E25")
JUDGE = LocalJudge()


def test_the_answering_passage_is_more_probable() -> None:
    result = JUDGE.relevance(query("что означает код E20"), [E20, E25, passage("Оплата картой.", "pay")])
    assert result["e20"] > 0.5
    assert result["e25"] == 0.0
    assert result["pay"] == 0.0


def test_without_codes_words_decide() -> None:
    result = JUDGE.relevance(query("вода не сливается"), [E20, passage("Оплата картой.", "pay")])
    assert result["e20"] > result["pay"]


@pytest.mark.parametrize("typed", ["E20", "е20", "Е20", "e 20 ошибка E20", "E-20", "ошибка Е 20"])
def test_a_code_is_the_same_however_it_is_typed(typed: str) -> None:
    assert JUDGE.relevance(query(f"вода не сливается {typed}"), [E20])["e20"] > 0.5


@pytest.mark.parametrize("other", ["E21", "E201", "E2", "F20", "E200", "E020"])
def test_a_passage_about_another_code_is_irrelevant(other: str) -> None:
    asked_query = query(f"Код {other} означает, что вода не сливается")
    assert asked_query.codes
    assert JUDGE.relevance(asked_query, [E20])["e20"] == 0.0
    assert set(asked_query.codes) <= set(JUDGE.uncovered(asked_query, [E20]))


@given(texts, lines, texts)
def test_relevance_is_a_probability(question: str, text: str, heading: str) -> None:
    one = passage(text, heading=heading)
    result = JUDGE.relevance(query(question), [one])
    assert list(result) == ["c1"]
    assert 0.0 <= result["c1"] <= 1.0


def test_relevance_by_the_reranker_is_kept() -> None:
    ranked = replace(passage("Оплата картой.", "pay"), scores={SCORE: 0.7})
    assert JUDGE.relevance(query("вода не сливается"), [ranked])["pay"] == 0.7


def test_uncovered_lists_unknown_codes_then_rare_words() -> None:
    asked_query = query("сушка белья E20 E77")
    asked_by_weight = {stem: weight for weight, stem in enumerate(asked_query.weights, 1)}
    weighed = type(asked_query)(asked_query.search, weights=asked_by_weight, codes=asked_query.codes)
    assert JUDGE.uncovered(weighed, [E20]) == ("E77", "e77", "бел", "сушк")
    assert JUDGE.uncovered(weighed, [E20, passage("Сушка белья и код E77.")]) == ()


def test_a_pasted_log_asks_for_no_particular_code() -> None:
    asked_query = query("E71 E72 E73 E74 вода")
    assert "E71" not in JUDGE.uncovered(asked_query, [E20])


def draft(*answer_text: str, of: Passage = E20, factuality: float = 100.0) -> Draft:
    claims = tuple(Claim(text, (1,), "supported") for text in answer_text)
    return Draft(" ".join(answer_text), claims, (Citation(1, of, of.text, (0, len(of.text))),), factuality=factuality)


def evaluated(asked_query: Query, given_draft: Draft, relevance: float) -> SelfEvaluation:
    return JUDGE.evaluate(
        Turn("t", asked_query.search, query=asked_query, evidence=Evidence(adequacy=relevance)), given_draft
    )


def test_an_answer_to_all_is_full_and_one_to_nothing_is_none() -> None:
    asked_query = query("вода сливается E20")
    assert evaluated(asked_query, draft("Код E20: вода не сливается."), 0.9).answerability == "fully"
    apart = passage("Оплата картой.")
    assert evaluated(asked_query, draft("Оплата картой.", of=apart), 0.9).answerability == "cannot"


def test_quality_rises_with_facts_and_coverage() -> None:
    asked_query = query("вода сливается")
    best = evaluated(asked_query, draft("Вода не сливается."), 0.9)
    assert evaluated(asked_query, draft("Вода не сливается.", factuality=50), 0.9).quality < best.quality
    assert evaluated(asked_query, draft("Оплата.", of=passage("Оплата.")), 0.9).quality < best.quality


@pytest.mark.parametrize("spelling", ["E20", "E-20", "Е20", "е20"])
def test_a_code_that_the_answer_names_is_not_missing(spelling: str) -> None:
    answer_text = f"Код {spelling}: вода не сливается."
    assert evaluated(query("что значит E20"), draft(answer_text, of=passage(answer_text)), 0.9).missing == ()


def test_a_solution_need_not_repeat_the_problem_stated_above_it() -> None:
    source = passage("ПРОБЛЕМА\n\nПринтер мигает красным.\n\nРЕШЕНИЕ\n\nЗамените картридж.")
    asked = query("почему мигает принтер красным")
    written = draft("Замените картридж.", of=source)
    assert evaluated(asked, written, 0.9).answerability == "fully"
    assert (
        evaluated(asked, draft("Замените картридж.", of=passage("Замените картридж.")), 0.9).answerability == "cannot"
    )


def test_a_code_in_the_title_of_what_is_cited_is_not_missing() -> None:
    source = passage("Обновите прошивку.", title="Бюллетень CVE-2016-2961")
    assert evaluated(query("is CVE-2016-2961 fixed"), draft("Обновите прошивку.", of=source), 0.9).missing == ()


def test_a_long_identifier_that_the_answer_names_is_not_missing() -> None:
    answer_text = "CVE-2016-2961 is fixed in version 8."
    assert evaluated(query("is CVE-2016-2961 fixed"), draft(answer_text, of=passage(answer_text)), 0.9).missing == ()


def test_a_code_that_the_answer_omits_is_missing() -> None:
    assert evaluated(query("что значат E20 и E77"), draft("Код E20: вода."), 0.9).missing == ("E77",)


@given(st.floats(0, 1), st.floats(0, 100), texts)
def test_scores_stay_in_bounds(relevance: float, factuality: float, question: str) -> None:
    result = evaluated(query(question), draft("Вода.", factuality=factuality), relevance)
    assert 1 <= result.quality <= 100
    assert 0.0 <= result.confidence <= 1.0


def test_confidence_is_the_relevance_of_what_is_supported() -> None:
    asked_query = query("вода сливается")
    assert evaluated(asked_query, draft("Вода не сливается."), 0.6).confidence == 0.6
    assert evaluated(asked_query, draft("Вода не сливается.", factuality=50), 0.6).confidence == 0.3


def test_round_trip_as_a_nested_parameter() -> None:
    pipeline = Pipeline()
    pipeline.add_component("grade", DocGrader(LocalJudge(fully=0.6, partly=0.2), depth=5))
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["components"])
    assert again.dumps() == text
    parameters = again.to_dict()["components"]["grade"]["init_parameters"]["judge"]["init_parameters"]
    assert parameters == {"fully": 0.6, "partly": 0.2}
