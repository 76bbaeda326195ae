import math

import pytest

from evaluation.cases import Case, Offer, Page, Quote, RankedPassage, Record, Sentence
from evaluation.metrics import built_in
from evaluation.metrics.intervals import ratios


def values(records: list[Record]) -> dict[str, float]:
    return {name: figure.value for name, figure in ratios(built_in.question_marks(records)).items()}


def record(case: Case, outcome: str, **rest: object) -> Record:
    return Record(case=case, outcome=outcome, **rest)  # type: ignore[arg-type]


def sentence(text: str, *excerpts: str, doc_id: str = "a", genuine: bool = True) -> Sentence:
    return Sentence(text, tuple(Quote(doc_id, excerpt, genuine) for excerpt in excerpts))


def test_ranking_scores_by_hand() -> None:
    scores = built_in.ranking_scores(
        [("x", "a", "b"), ("c",), (), ("p", "q", "r", "s", "t", "d")],
        [("a", "z"), ("c",), ("n",), ("d",)],
    )
    assert scores["hit@1"] == [0.0, 1.0, 0.0, 0.0]
    assert scores["hit@3"] == [1.0, 1.0, 0.0, 0.0]
    assert scores["hit@5"] == [1.0, 1.0, 0.0, 0.0]
    assert scores["hit@10"] == [1.0, 1.0, 0.0, 1.0]
    assert scores["recall@5"] == [0.5, 1.0, 0.0, 0.0]
    assert scores["all_articles@5"] == [0.0, 1.0, 0.0, 0.0]
    assert scores["mrr"] == [0.5, 1.0, 0.0, pytest.approx(1 / 6)]
    ideal = 1 + 1 / math.log2(3)
    assert scores["ndcg@10"] == [
        pytest.approx(1 / math.log2(3) / ideal),
        1.0,
        0.0,
        pytest.approx(1 / math.log2(7)),
    ]


def test_answer_marks_cover_the_cases_that_should_be_answered() -> None:
    case = Case("1", "?", answerable=True, gold_docs=("a",), gold_spans=("24 месяца",))
    good = sentence("Гарантия 24 месяца.", "Гарантия 24 месяца.")
    stray = sentence("Гарантия 24 месяца.", "Возврат 7 дней.", doc_id="b")
    measured = values(
        [
            record(case, "answered", text="Гарантия 24 месяца. [1]", sentences=(good,), checked=True),
            record(case, "partially_answered", text="Гарантия 24 месяца. [1] Нет. [2]", sentences=(good, stray)),
            record(case, "refused", text="Гарантия 24 месяца."),
            record(Case("2", "?", answerable=False), "answered", text="x", checked=True),
        ]
    )
    assert measured["gold_span_in_answer"] == pytest.approx(2 / 3)
    assert measured["citation_precision_gold"] == pytest.approx(2 / 3)
    assert measured["citation_precision_entailed"] == pytest.approx(2 / 3)
    assert measured["claims_verified"] == pytest.approx(2 / 3)
    assert measured["answered_outright"] == pytest.approx(1 / 3)


def test_refusals_are_compared_with_known_answerability() -> None:
    yes, no = Case("1", "?", answerable=True), Case("2", "?", answerable=False)
    unknown = Case("3", "?")
    outcomes = [(yes, "answered"), (yes, "answered"), (yes, "clarify"), (no, "low_confidence"), (no, "answered")]
    measured = values([record(case, outcome) for case, outcome in [*outcomes, (unknown, "refused")]])
    assert measured["over_refusal"] == pytest.approx(1 / 3)
    assert measured["false_answer_rate"] == 0.5
    assert measured["refusal_precision"] == 0.5
    assert measured["refusal_recall"] == 0.5


def test_outcome_and_demanded_reason_must_both_match() -> None:
    refused = Case("1", "?", outcome="refused", reason="no_relevant_context")
    answered = Case("2", "?", outcome="answered", must_contain=("30 минут",), must_not_contain=("E10",))
    results = (RankedPassage("a", "", "", "Ссылка живёт 30 минут.", 1.0, 1.0),)
    measured = values(
        [
            record(refused, "refused", reason="no_relevant_context"),
            record(refused, "refused", reason="unverified_answer"),
            record(answered, "answered", text="Ссылка живёт 30 минут [1].", passages=results),
            record(answered, "answered", text="30 минут, а не E10."),
            record(Case("3", "?"), "failed"),
        ]
    )
    assert measured["outcome_accuracy"] == 0.75
    assert measured["facts_in_answer"] == 0.75
    assert measured["keywords_found"] == 1.0
    assert measured["survived"] == 0.8


def test_intents_are_counted_over_all_and_by_category() -> None:
    alarm = Case("1", "?", intents=("high_stakes", "wants_human"), category="alarm")
    talk = Case("2", "?", intents=("chitchat",), category="talk")
    measured = values([record(alarm, "x", intent="wants_human"), record(talk, "x", intent="answerable")])
    assert (measured["routed"], measured["routed:alarm"], measured["routed:talk"]) == (0.5, 1.0, 0.0)


def test_noise_and_reference_differences_are_counted_by_case() -> None:
    case = Case("1", "?", gold_docs=("a",))
    (counted,) = built_in.question_marks(
        [record(case, "x", ranked=("b",))], [record(case, "x", ranked=("a",))], {"1": 1.0}
    )
    assert counted["hit@5_over_reference"] == (-1.0, 1.0)
    assert counted["hit@5_lost"] == (1.0, 1.0)


def test_every_gated_figure_has_a_better_direction() -> None:
    assert all(built_in.better_direction(figure) != "neither" for figure in built_in.GATED)
    assert built_in.better_direction("over_refusal") == "lower"
    assert built_in.better_direction("routed:alarm") == "higher"
    assert built_in.better_direction("passes") == "neither"


@pytest.mark.parametrize(
    ("outcome", "cited", "offered", "expected"),
    [
        ("answered", ("a",), (), 1.0),
        ("answered", ("x",), ("a",), 0.0),
        ("refused", ("a",), ("x", "a"), 1.0),
        ("low_confidence", (), ("x", "y", "z", "a"), 0.0),
    ],
)
def test_a_right_article_counts_if_it_is_cited_or_offered(
    outcome: str, cited: tuple[str, ...], offered: tuple[str, ...], expected: float
) -> None:
    asked = Case("1", "?", answerable=True, gold_docs=("a",))
    pages = tuple(Page(doc_id, "", "", "") for doc_id in cited)
    offers = tuple(Offer(doc_id, "", "", "", "", 0.3) for doc_id in offered)
    assert values([record(asked, outcome, cited=pages, offered=offers)])["article_shown"] == expected
