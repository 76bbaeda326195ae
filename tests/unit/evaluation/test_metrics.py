import math

import pytest

from evaluation import metrics
from evaluation.cases import Case, Quote, Record, Sentence
from evaluation.intervals import Figure, difference, mean, percentile


def value(figure: Figure | None) -> float:
    assert figure is not None
    return figure.value


def record(case: Case, outcome: str, **rest: object) -> Record:
    return Record(case=case, outcome=outcome, **rest)  # type: ignore[arg-type]


def sentence(text: str, *excerpts: str, doc_id: str = "a", genuine: bool = True) -> Sentence:
    return Sentence(text, tuple(Quote(doc_id, excerpt, genuine) for excerpt in excerpts))


def test_ranking_scores_by_hand() -> None:
    scores = metrics.ranking_scores(
        [("x", "a", "b"), ("c",), (), ("p", "q", "r", "s", "t", "d")],
        [("a", "z"), ("c",), ("n",), ("d",)],
    )
    assert scores["hit@1"] == [0.0, 1.0, 0.0, 0.0]
    assert scores["hit@3"] == [1.0, 1.0, 0.0, 0.0]
    assert scores["hit@5"] == [1.0, 1.0, 0.0, 0.0]
    assert scores["hit@10"] == [1.0, 1.0, 0.0, 1.0]
    assert scores["recall@5"] == [0.5, 1.0, 0.0, 0.0]
    assert scores["mrr"] == [0.5, 1.0, 0.0, pytest.approx(1 / 6)]
    ideal = 1 + 1 / math.log2(3)
    assert scores["ndcg@10"] == [
        pytest.approx(1 / math.log2(3) / ideal),
        1.0,
        0.0,
        pytest.approx(1 / math.log2(7)),
    ]


@pytest.mark.parametrize(
    ("text", "spans", "held"),
    [
        ("Гарантия действует 24 месяца [1].", ["24 месяца"], True),
        ("«Ещё раз», — сказал он.", ["еще раз"], True),
        ("The panthers won.", ["Panthers", "x"], True),
        ("Код 1308.", ["308"], False),
        ("Ничего.", [""], False),
        ("Счёт 23–16", ["23–16"], True),
    ],
)
def test_a_gold_span_is_found_as_whole_words_in_any_spelling(text: str, spans: list[str], held: bool) -> None:
    assert metrics.holds_span(metrics.without_citations(text), spans) is held


def test_only_the_first_three_sentences_count() -> None:
    text = "Первое. [1] Второе. [1]\n\n1. Третье. [2]\n2. Четвёртое. [2]"
    assert metrics.sentence_count(text) == 4
    assert "Четвёртое" not in metrics.first_sentences(text)
    assert "Третье" in metrics.first_sentences(text)


@pytest.mark.parametrize(
    ("quotes", "said", "entailed"),
    [
        (["Гарантия — 24 месяца со дня покупки."], "Гарантия — 24 месяца со дня покупки.", True),
        (["Гарантия — 24 месяца со дня покупки."], "Гарантия — 36 месяцев со дня покупки.", False),
        (["Вернуть товар можно."], "Вернуть товар нельзя.", False),
        (["Ошибка E20: вода не сливается."], "Ошибка E25: вода не сливается.", False),
        (["Нажмите «Пуск»."], "Нажмите «Пуск», затем выньте вилку из розетки.", False),
        (["Ошибка E20.", "Прочистите фильтр насоса."], "Ошибка E20: прочистите фильтр насоса.", True),
        ([], "Что угодно.", False),
    ],
)
def test_a_citation_entails_what_it_says_and_nothing_more(quotes: list[str], said: str, entailed: bool) -> None:
    assert metrics.entails(sentence(said, *quotes).quotes, said) is entailed


def test_a_quote_that_is_not_in_its_passage_entails_nothing() -> None:
    false_quote = sentence("Вода не сливается.", "Вода не сливается.", genuine=False)
    assert metrics.citation_scores([false_quote]) == [0.0]


def test_answers_are_counted_over_what_should_have_been_shown() -> None:
    case = Case("1", "?", answerable=True, gold_docs=("a",), gold_spans=("24 месяца",))
    good = sentence("Гарантия 24 месяца.", "Гарантия 24 месяца.")
    stray = sentence("Гарантия 24 месяца.", "Возврат 7 дней.", doc_id="b")
    figures = metrics.answering(
        [
            record(case, "answered", text="Гарантия 24 месяца. [1]", sentences=(good,)),
            record(case, "low_confidence", text="Гарантия 24 месяца. [1] Нет. [2]", sentences=(good, stray)),
            record(case, "refused", text="Гарантия 24 месяца."),
            record(Case("2", "?", answerable=False), "answered", text="x"),
        ]
    )
    assert value(figures["gold_span_in_answer"]) == pytest.approx(2 / 3)
    assert value(figures["citation_precision_gold"]) == pytest.approx(2 / 3)
    assert value(figures["citation_precision_entailed"]) == pytest.approx(2 / 3)
    assert value(figures["sentences_max"]) == 2
    assert value(figures["cited_sentences"]) == 1


def test_refusals_are_held_against_what_is_known() -> None:
    yes, no = Case("1", "?", answerable=True), Case("2", "?", answerable=False)
    unknown = Case("3", "?")
    outcomes = [(yes, "answered"), (yes, "answered"), (yes, "clarify"), (no, "refused"), (no, "low_confidence")]
    figures = metrics.refusing([record(case, outcome) for case, outcome in [*outcomes, (unknown, "refused")]])
    assert value(figures["over_refusal"]) == pytest.approx(1 / 3)
    assert value(figures["false_answer"]) == 0.5
    assert value(figures["refusal_precision"]) == 0.5
    assert value(figures["refusal_recall"]) == 0.5


def test_outcome_and_demanded_reason_must_both_match() -> None:
    refused = Case("1", "?", outcome="refused", reason="no_relevant_context")
    answered = Case("2", "?", outcome="answered", must_contain=("30 минут",), must_not_contain=("E10",))
    figures = metrics.outcomes(
        [
            record(refused, "refused", reason="no_relevant_context"),
            record(refused, "refused", reason="unverified_answer"),
            record(answered, "answered", text="Ссылка живёт 30 минут [1]."),
            record(answered, "answered", text="30 минут, а не E10."),
        ]
    )
    assert value(figures["outcome_accuracy"]) == 0.75
    assert value(figures["facts_in_answer"]) == 0.75


def test_an_answer_about_another_code_is_seen_in_its_text_and_in_its_quotes() -> None:
    case = Case("1", "ошибка E21")
    other = record(case, "answered", text="E20: слейте воду. [1]")
    quoted = record(case, "answered", text="Слейте воду. [1]", sentences=(sentence("Слейте воду.", "E20: слейте."),))
    same = record(case, "answered", text="E21: слейте воду. [1]")
    refused = record(case, "refused", text="Кода E21 нет, есть E20.")
    assert [metrics.answers_another_code(r, "E21") for r in (other, quoted, same, refused)] == [
        True,
        True,
        False,
        False,
    ]


def test_means_have_intervals_and_nothing_has_no_mean() -> None:
    figure = mean([0.0, 1.0] * 50)
    assert figure is not None
    assert figure.value == 0.5
    assert 0.38 < figure.low < 0.5 < figure.high < 0.62
    assert mean([]) is percentile([], 50) is None
    assert value(percentile([1.0, 2.0, 9.0], 50)) == 2.0
    assert value(difference([1.0, 1.0], [0.0, 1.0])) == 0.5
