"""Grading of turns by an answer key, on cases made by hand."""

import pytest

from evaluation.cases import Answerable, AnswerKey, Case, LabelledPassage, Offer, Page, RankedPassage, Record
from evaluation.metrics.answer_key import fact_recall, grade, grade_turn, key_marks, right_if_claimed

WHOLE = "Вернуть товар можно в течение 14 дней, нужен чек из магазина."
PART = "Чек хранится в личном кабинете, его можно распечатать дома."
OTHER = "Доставка бесплатна при заказе от трёх тысяч рублей."
PASSAGES = (
    LabelledPassage("returns", "Возврат", "Срок", WHOLE, 2),
    LabelledPassage("receipt", "Чек", "", PART, 1),
    LabelledPassage("delivery", "Доставка", "", OTHER, 0),
)
FACTS = ("вернуть в течение 14 дней", "нужен чек")


def key(answerable: Answerable = "yes", facts: tuple[str, ...] = FACTS) -> AnswerKey:
    return AnswerKey("howto", answerable, facts, PASSAGES)


def turn(
    text: str, *cited: tuple[str, str], outcome: str = "answered", answerable: Answerable = "yes", offered: str = ""
) -> Record:
    return Record(
        Case("1", "Как вернуть товар?", key=key(answerable)),
        outcome,
        text=text,
        draft=text,
        cited=tuple(Page(doc_id, "", "", page) for doc_id, page in cited),
        offered=(Offer(offered, "", "", "", "", 0.4),) if offered else (),
    )


def test_a_page_matches_a_passage_with_mostly_the_same_words() -> None:
    for page, expected in (
        (("returns", WHOLE), 2),
        (("returns", f"{WHOLE} Деньги вернём на карту."), 2),
        (("returns", "Вернуть товар можно в течение 14 дней."), 2),
        (("receipt", WHOLE), None),
        (("returns", "Совсем о другом написано в этой статье."), None),
        (("delivery", OTHER), 0),
    ):
        assert grade(Page(page[0], "", "", page[1]), key()) == expected


@pytest.mark.parametrize(
    ("text", "recall"),
    [
        ("Товар возвращают в течение 14 дней. Нужен чек.", 1.0),
        ("Вернуть можно в течение 30 дней. Нужен чек.", 0.5),
        ("Вернуть можно в течение 14 дней.", 0.5),
        ("Позвоните нам.", 0.0),
    ],
)
def test_a_fact_needs_most_of_its_words_and_all_of_its_numbers(text: str, recall: float) -> None:
    assert fact_recall(text, ("в течение 14 дней", "нужен чек")) == recall


def test_a_right_answer_needs_a_labelled_page_and_the_facts() -> None:
    for record, right in (
        (turn(f"{WHOLE} [1]", ("returns", WHOLE)), True),
        (turn("Можно в течение 14 дней вернуть.", ("returns", WHOLE)), True),
        # A part of the answer is cited, and half of the facts are there.
        (turn("Нужен чек.", ("receipt", PART)), True),
        (turn("Чек можно распечатать.", ("receipt", PART)), False),
        # The right page is cited, but the answer does not use it.
        (turn("Позвоните нам.", ("returns", WHOLE)), False),
        (turn(WHOLE, ("delivery", OTHER)), False),
        (turn(WHOLE), False),
        (turn(WHOLE, ("returns", WHOLE), answerable="no"), False),
        (turn(WHOLE, ("returns", WHOLE), outcome="low_confidence"), False),
    ):
        assert record.case.key is not None
        assert grade_turn(record, record.case.key).right is right


def test_tiers_and_their_figures() -> None:
    claimed = key_marks(turn(WHOLE, ("returns", WHOLE)))
    assert claimed["answer_precision"] == claimed["answer_precision:howto"] == (1.0, 1.0)
    assert claimed["tier:answered"] == (1.0, 1.0)
    assert claimed["unjudged"] == (0.0, 1.0)
    offered = key_marks(turn("", outcome="low_confidence", offered="receipt"))
    assert "answer_precision" not in offered
    assert offered["tier:articles"] == offered["right_or_offered"] == offered["right_or_offered:articles"] == (1.0, 1.0)
    assert offered["answer_recall"] == (0.0, 1.0)
    beside = key_marks(turn("", outcome="refused", offered="delivery"))
    assert beside["right_or_offered"] == (0.0, 1.0)
    absent = key_marks(turn(WHOLE, ("delivery", "Незнакомый фрагмент."), answerable="no"))
    assert absent["claimed"] == absent["unjudged"] == (1.0, 1.0)
    assert "answer_recall" not in absent
    assert key_marks(Record(Case("2", "?"), "answered")) == {}


def test_ranking_marks_use_the_retrieved_passages() -> None:
    ranked = tuple(RankedPassage(doc_id, "", "", text, 1.0, 0.5) for doc_id, text in (("x", OTHER), ("returns", WHOLE)))
    marks = key_marks(Record(Case("1", "?", key=key()), "refused", passages=ranked))
    assert (marks["labelled@1"], marks["labelled@3"]) == ((0.0, 1.0), (1.0, 1.0))


def test_an_unclaimed_turn_counts_by_its_draft_or_top_passage() -> None:
    assert right_if_claimed(turn(WHOLE, ("returns", WHOLE), outcome="low_confidence"), key())
    first = (RankedPassage("returns", "", "", WHOLE, 1.0, 0.5),)
    assert right_if_claimed(Record(Case("1", "?", key=key()), "refused", passages=first), key())
    assert not right_if_claimed(Record(Case("1", "?", key=key()), "refused"), key())
