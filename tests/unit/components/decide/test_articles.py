"""Articles and topics that are offered instead of an answer."""

from dataclasses import replace

import pytest
from haystack import Document

from components.decide.articles import ARTICLES_IN_DOUBT, leads, nearest
from components.decide.main_topics import MainTopics
from components.faults import collect_degraded
from components.judge.relevance import COSINE
from components.passages import SEARCH
from components.retrieve.probe import Probe
from components.turn import Article, Passage, RejectedApproach, Turn
from tenants.index import DENSE, SPARSE
from tests.turns import document, passage, turn

pytestmark = pytest.mark.usefixtures("terms")

FEES = passage("Плата за хранение взимается с третьего дня. Оплатить можно картой.", doc_id="fees", heading="Хранение")
DAYS = passage("Посылка хранится десять дней.", "c2", doc_id="fees", heading="Сроки")
POINT = passage("# Пункт выдачи\n\nХранение в пункте бесплатно три дня.", "c3", doc_id="points")


def offered(given_turn: Turn, **judged: float) -> tuple[Article, ...]:
    return nearest(replace(given_turn, evidence=replace(given_turn.evidence, relevance_by_chunk=judged)), 0.1)


def test_the_likeliest_sections_are_offered_whatever_their_document() -> None:
    sections = [passage(f"Хранение, часть {n}.", f"s{n}", doc_id="fees", heading=f"Часть {n}") for n in range(3)]
    crowded = turn("хранение посылки", FEES, *sections, POINT)
    result = offered(crowded, c1=0.5, s0=0.4, s1=0.3, s2=0.2, c3=0.25)
    assert [(one.passage.chunk_id, one.score) for one in result] == [("c1", 0.5), ("s0", 0.4), ("s1", 0.3)]


def test_a_section_near_by_meaning_comes_before_a_slightly_likelier_one() -> None:
    near = replace(DAYS, scores={DENSE: 1.0})
    assert [one.passage.chunk_id for one in offered(turn("хранение", FEES, near), c1=0.4, c2=0.3)] == ["c2", "c1"]
    assert [one.passage.chunk_id for one in offered(turn("хранение", FEES, near), c1=0.8, c2=0.2)] == ["c1", "c2"]


def test_articles_after_the_likeliest_come_in_search_order() -> None:
    sections = [
        replace(FEES, chunk_id=f"c{n}", heading=f"Часть {n}", scores={SEARCH: score})
        for n, score in enumerate((0.1, 0.3, 0.2, 0.5, 1.0), 1)
    ]
    asked = turn("хранение посылки", *sections)
    judged = {"c1": 0.5, "c2": 0.4, "c3": 0.3, "c4": 0.2, "c5": 0.15}
    given = replace(asked, evidence=replace(asked.evidence, relevance_by_chunk=judged))
    offered_in_doubt = nearest(given, 0.1, ARTICLES_IN_DOUBT)
    assert [one.passage.chunk_id for one in offered_in_doubt] == ["c1", "c2", "c3", "c5", "c4"]


def test_articles_after_the_likeliest_go_more_by_meaning_than_by_words() -> None:
    nearness = ((1.0, 0.0), (0.5, 0.3), (0.2, 1.0))
    sections = [
        replace(FEES, chunk_id=f"s{n}", heading=f"Часть {n}", scores={COSINE: 0.8, DENSE: by_meaning, SPARSE: by_words})
        for n, (by_meaning, by_words) in enumerate(nearness, 1)
    ]
    likeliest = [replace(FEES, chunk_id=f"c{n}", heading=f"Раздел {n}") for n in (1, 2, 3)]
    asked = turn("хранение посылки", *likeliest, *reversed(sections))
    judged = {"c1": 0.5, "c2": 0.4, "c3": 0.3, "s1": 0.02, "s2": 0.02, "s3": 0.02}
    given = replace(asked, evidence=replace(asked.evidence, relevance_by_chunk=judged))
    assert [one.passage.chunk_id for one in nearest(given, 0.01, ARTICLES_IN_DOUBT)][3:] == ["s1", "s3", "s2"]


def test_sections_of_a_likelier_reading_alternate_with_those_of_the_query() -> None:
    evidence = replace(turn("хранение").evidence, passages=(FEES, DAYS), relevance_by_chunk={"c1": 0.2, "c2": 0.1})
    asked = replace(turn("хранение"), evidence=evidence)
    beside = [
        document(POINT.text, chunk_id, doc_id="points", heading=chunk_id, relevance=probability)
        for chunk_id, probability in (("c3", 0.4), ("c4", 0.3))
    ]
    result = nearest(asked, 0.1, ARTICLES_IN_DOUBT, beside)
    assert [(one.passage.chunk_id, one.score) for one in result] == [
        ("c3", 0.2),
        ("c1", 0.2),
        ("c4", 0.15),
        ("c2", 0.1),
    ]
    less_likely = [replace(one, meta={**one.meta, "relevance": 0.15}) for one in beside]
    assert [one.passage.chunk_id for one in nearest(asked, 0.05, beside=less_likely)] == ["c1", "c2", "c3"]


def test_sections_of_the_same_name_are_offered_once() -> None:
    first = replace(FEES, title="Посылки")
    again = replace(first, chunk_id="c4", doc_id="other")
    elsewhere = replace(again, chunk_id="c5", heading="За границу")
    given = turn("хранение посылки", first, again, elsewhere, POINT)
    result = offered(given, c1=0.5, c4=0.45, c5=0.4, c3=0.2)
    assert [one.passage.chunk_id for one in result] == ["c1", "c5", "c3"]


def test_an_opening_joined_with_a_section_is_not_offered_beside_it() -> None:
    opening = passage("Посылки ждут вас.\n\n### Хранение\n\nХранение платное с третьего дня.", doc_id="fees")
    section = replace(FEES, chunk_id="c2")
    result = offered(turn("хранение платное", opening, section, POINT), c1=0.5, c2=0.4, c3=0.2)
    assert [one.passage.chunk_id for one in result] == ["c1", "c3"]


@pytest.mark.parametrize(
    ("judged", "expected"),
    [((0.4,), True), ((0.4, 0.1), True), ((0.4, 0.2), False), ((0.1, 0.01), False), ((), False)],
)
def test_the_first_article_leads_if_no_other_is_near(judged: tuple[float, ...], expected: bool) -> None:
    given = turn("хранение", FEES, DAYS, POINT)
    by_chunk = {f"c{n}": probability for n, probability in enumerate(judged, 1)}
    assert leads(replace(given, evidence=replace(given.evidence, relevance_by_chunk=by_chunk))) is expected


@pytest.mark.parametrize(
    ("standalone", "order"), [("", ["c1", "c2", "c3"]), ("хранение (посылка)", ["c1", "c3", "c2"])]
)
def test_a_completed_query_keeps_the_best_section_of_the_message(standalone: str, order: list[str]) -> None:
    evidence = replace(turn("хранение").evidence, passages=(FEES, DAYS), relevance_by_chunk={"c1": 0.4, "c2": 0.3})
    asked = replace(turn("хранение"), evidence=evidence, standalone_question=standalone)
    beside = [document(POINT.text, "c3", doc_id="fees", heading="Пункт", relevance=0.4, leads=True)]
    assert [one.passage.chunk_id for one in nearest(asked, 0.1, beside=beside)] == order


def test_distant_and_unjudged_sections_are_not_offered() -> None:
    assert [one.passage.chunk_id for one in offered(turn("хранение", FEES, DAYS, POINT), c1=0.05, c2=0.3)] == ["c2"]
    assert offered(turn("хранение", FEES)) == ()


@pytest.mark.parametrize(
    ("one", "question", "snippet"),
    [
        (FEES, "как оплатить", "Плата за хранение взимается с третьего дня. Оплатить можно картой."),
        (replace(POINT, chunk_id="c1"), "пункт выдачи", "Хранение в пункте бесплатно три дня."),
        (passage("1. Откройте раздел «Посылки».\n2. Нажмите «Продлить срок хранения»."), "продлить хранение",
         "Откройте раздел «Посылки». Нажмите «Продлить срок хранения»."),
        (passage("| Размер | Цена за день |\n| --- | --- |\n| S | 50 рублей в день |"), "цена размера S",
         "S | 50 рублей в день"),
        (passage("«Пристань» — магазин техники."), "магазин", "«Пристань» — магазин техники."),
        (passage("Слово."), "слово", ""),
    ],
)  # fmt: skip
def test_the_snippet_is_of_the_sentences_nearest_to_the_question(one: Passage, question: str, snippet: str) -> None:
    assert [article.snippet for article in offered(turn(question, one), c1=0.5)] == [snippet]


MERGED = passage(
    "### Баллы и возврат\n\nПри возврате баллы списываются.\n\n### Как подарить баллы\n\nПередать их нельзя никому.",
    title="Бонусы",
)


@pytest.mark.parametrize(("heading", "path"), [("", ""), ("Правила", "Правила › ")])
def test_the_snippet_of_merged_sections_is_of_the_one_that_fits(heading: str, path: str) -> None:
    (article,) = offered(turn("подарить баллы", replace(MERGED, heading=heading)), c1=0.5)
    assert (article.passage.heading, article.snippet) == (
        f"{path}Как подарить баллы",
        "Передать их нельзя никому.",
    )


def test_a_rejected_approach_is_never_the_snippet() -> None:
    question_turn = turn("оплатить хранение картой", FEES)
    rejected = RejectedApproach("r", "Оплатить хранение картой", "", "2026-01-01")
    text = passage("Оплатить хранение можно картой. Оплатить можно и наличными в пункте.")
    question_turn = replace(
        question_turn, evidence=replace(question_turn.evidence, passages=(text,), rejected=(rejected,))
    )
    assert [one.snippet for one in offered(question_turn, c1=0.5)] == ["Оплатить можно и наличными в пункте."]


def test_no_article_is_near_an_unknown_code() -> None:
    question_turn = turn("ошибка E401", FEES)
    question_turn = replace(question_turn, evidence=replace(question_turn.evidence, uncovered=("E401",)))
    assert offered(question_turn, c1=0.5) == ()


FOUND = {
    "where is my order": document("…", "c1", title="Delivery", relevance=0.6),
    "does not start": document("…", "c2", title="Gift cards", relevance=0.1),
    "how to return a product": document("…", "c3", title="Returns", relevance=0.5),
    "payment": document("…", "c4", title="Delivery", relevance=0.5),
    "warranty": document("…", "c5", title="All " * 20, relevance=0.9),
}


def test_topics_are_titles_that_answer_common_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probe, "best", lambda _self, reason: FOUND.get(reason))
    monkeypatch.setattr(Probe, "probability", lambda _self, _title: 0.5)
    assert MainTopics().find("en") == ("Delivery", "Returns")
    assert MainTopics(limit=1).find("en") == ("Delivery",)


def test_a_title_that_is_not_answered_is_replaced_by_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [
        document("…", f"c{place}", doc_id="delivery", title="Delivery", heading=heading, chunk_index=place)
        for place, heading in ((2, "Carrying upstairs"), (1, "How much delivery costs"), (0, ""))
    ]
    monkeypatch.setattr(Probe, "best", lambda _self, reason: FOUND.get(reason) and sections[0])
    monkeypatch.setattr(Probe, "ranked", lambda _self, _title: sections)
    monkeypatch.setattr(Probe, "probability", lambda _self, topic: 0.9 if " " in topic else 0.2)
    assert MainTopics().find("en")[:1] == ("How much delivery costs",)


def test_there_are_no_topics_if_the_search_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Probe, _reason: str) -> Document:
        raise OSError

    monkeypatch.setattr(Probe, "best", fail)
    with collect_degraded() as noted:
        assert MainTopics().find("en") == ()
    assert list(noted) == ["suggestions"]
