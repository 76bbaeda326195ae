"""Marks of replies by what their questions expect."""

from dataclasses import replace

import pytest

from components.turn import Article, Citation, Draft, Passage, Reply, Turn
from pipelines.ask.evaluation.comparison import chance_of
from pipelines.ask.evaluation.marking import holds_all, is_article, mark
from tenants.desk.evaluation_questions import Expected

RETURNS = Passage("c1", "returns.md", "Возврат товара", "Сроки › Деньги", "Вернём деньги за 10 дней.", ((0, 25),))
OTHER = replace(RETURNS, chunk_id="c2", doc_id="other.md", title="Доставка", heading="", text="Привезём завтра.")


def answered(text: str, passage: Passage = RETURNS) -> Turn:
    draft = Draft(text, (), (Citation(1, passage, passage.text, (0, len(passage.text))),))
    return Turn("t", "?", outcome="answered", draft=draft, reply=Reply(text))


def offering(*passages: Passage) -> Turn:
    articles = tuple(Article(passage, "", 0.5) for passage in passages)
    return Turn("t", "?", outcome="refused", reply=Reply("Посмотрите статьи", articles=articles))


FACTS = Expected(facts=("10 дней|2 недели",))
ARTICLE = Expected(article="Возврат товара")


def test_a_reply_is_marked_by_its_expectation() -> None:
    for turn, expected, result in (
        (answered("Вернём за 10 дней [1]."), FACTS, "answered"),
        (answered("В течение 2 недель [1]."), FACTS, "answered"),
        (answered("Вернём за 110 дней [1]."), FACTS, "wrong"),
        (answered("За десять [10] дней."), FACTS, "wrong"),
        (answered("Да."), ARTICLE, "answered"),
        (answered("Да.", OTHER), ARTICLE, "wrong"),
        (offering(OTHER, RETURNS), ARTICLE, "offered"),
        (offering(OTHER, RETURNS), FACTS, "offered"),
        (offering(OTHER, OTHER, OTHER, RETURNS), ARTICLE, "missed"),
        (offering(OTHER), FACTS, "missed"),
        (offering(RETURNS), Expected(refused=True), "refused"),
        (answered("Да."), Expected(refused=True), "wrong"),
    ):
        assert mark(turn, expected) == result


def test_facts_are_found_whatever_their_endings_and_spaces() -> None:
    assert holds_all("Бесплатно от 5\u00a0000 рублей, 24 месяца гарантии", ("5000 рублей", "24 месяцев"))
    assert not holds_all("24 дня и 3 месяца", ("24 месяца",))
    assert not holds_all("Возврат", ("₽",))


@pytest.mark.parametrize(
    "named", ["returns.md", "возврат товара", "Деньги", "Возврат товара › Деньги", "Сроки > Деньги"]
)
def test_an_article_is_named_by_title_heading_id_or_path(named: str) -> None:
    assert is_article(RETURNS, named)
    assert not is_article(OTHER, named)


MERGED = "### Коды\n\n### Ошибка P07\n\nЖернова заклинило.\n\n### Гарантия\n\nГарантия 24 месяца."
MILL = replace(RETURNS, title="Кофемолка", heading="", text=MERGED)


@pytest.mark.parametrize(
    ("quoted", "named"),
    [
        ("Жернова заклинило.", {"Ошибка P07", "Коды › Ошибка P07", "кофемолка › ошибка P07", "Коды"}),
        ("Гарантия 24 месяца.", {"Гарантия"}),
        ("### Гарантия\n\nГарантия 24 месяца.", {"Гарантия"}),
        (MERGED, {"Ошибка P07", "Коды › Ошибка P07", "кофемолка › ошибка P07", "Коды", "Гарантия"}),
    ],
)
def test_a_section_in_a_shared_passage_counts_if_it_is_cited(quoted: str, named: set[str]) -> None:
    start = MERGED.index(quoted)
    citation = Citation(1, MILL, quoted, (start, start + len(quoted)))
    turn = Turn("t", "?", outcome="answered", draft=Draft(quoted, (), (citation,)), reply=Reply(quoted))
    for name in ("Ошибка P07", "Коды › Ошибка P07", "кофемолка › ошибка P07", "Коды", "Гарантия"):
        assert (mark(turn, Expected(article=name)) == "answered") == (name in named), name
        assert mark(offering(MILL), Expected(article=name)) == "offered"


def test_the_chance_is_that_of_an_exact_mcnemar_test() -> None:
    assert [round(chance_of(*pair), 4) for pair in ((0, 0), (5, 0), (6, 0), (9, 2))] == [1.0, 0.0312, 0.0156, 0.0327]
