"""Quotations: the answering section from its start, with whole lists, and without forbidden content."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.answer.drafts import to_draft
from components.answer.extractive import ExtractiveAnswerer
from components.judge.claims import is_quoted
from components.turn import Draft, RejectedApproach
from tests.generated import texts
from tests.turns import document

pytestmark = pytest.mark.usefixtures("terms")

STEPS = "Чтобы вернуть товар:\n\n" + "\n".join(f"{n}. Сделайте шаг номер {n}, он описан в письме." for n in range(1, 9))


def quoted(query: str, *contents: str, limit: int = 1_500, rejected: list[RejectedApproach] | None = None) -> Draft:
    documents = [document(text, f"c{place}") for place, text in enumerate(contents)]
    return to_draft(ExtractiveAnswerer(limit).run(query=query, documents=documents, rejected=rejected)["answers"][0])


def test_a_section_is_quoted_whole_and_in_its_layout() -> None:
    draft = quoted("как вернуть товар", STEPS)
    assert draft.text == f"{STEPS} [1]"
    assert draft.quoted
    assert not draft.truncated


def test_a_list_is_never_cut() -> None:
    draft = quoted("как вернуть товар", f"{STEPS}\n\nДеньги придут за три дня.", limit=100)
    assert "8. Сделайте шаг номер 8" in draft.text
    assert "Деньги" not in draft.text
    assert draft.truncated


def test_a_section_with_a_gap_is_quoted_from_there() -> None:
    text = "Модель — это способ, которым облако даёт ресурсы.\n\nСервис хранит файлы."
    cut = document(text, "c1", gap=text.index("\n"))
    draft = to_draft(ExtractiveAnswerer().run(query="где хранить файлы", documents=[cut])["answers"][0])
    assert draft.text == "Сервис хранит файлы. [1]"
    assert draft.truncated


def test_the_part_under_the_fitting_heading_is_quoted() -> None:
    text = "### Доставка\n\nПривезём завтра.\n\n### Возврат товара\n\nПримем за две недели."
    draft = quoted("возврат товара", text)
    assert draft.text == "Примем за две недели. [1]"
    assert [one.passage.heading for one in draft.citations] == ["Возврат товара"]


REFUND = "Вернём цену за оставшиеся месяцы."
QUESTION = "Можно ли вернуть сертификат"


@pytest.mark.parametrize(
    ("yes", "text", "names"),
    [
        ("Да.", f"Да. {REFUND}", {"heading": f"Гарантия › {QUESTION}"}),
        ("Да.", f"### Цена\n\nДве тысячи.\n\n### {QUESTION}\n\nДа. {REFUND}", {"heading": ""}),
        ("Да.", f"Да. {REFUND}", {"heading": "", "title": QUESTION}),
        ("- Да.", f"- Да. {REFUND}", {"heading": QUESTION}),
    ],
)
def test_a_yes_is_quoted_below_the_question_that_it_answers(yes: str, text: str, names: dict[str, Any]) -> None:
    section = document(text, **names)
    draft = to_draft(ExtractiveAnswerer().run(query="вернуть за оставшиеся месяцы", documents=[section])["answers"][0])
    assert draft.text == f"{QUESTION}\n\n{yes} {REFUND} [1]"
    assert all(is_quoted(claim.text, draft.citations[0].passage) for claim in draft.claims)


def test_a_sentence_that_begins_with_no_needs_no_heading() -> None:
    section = document("No water comes in if the tap is closed.", heading="Water")
    draft = to_draft(ExtractiveAnswerer().run(query="no water", documents=[section])["answers"][0])
    assert draft.text == "No water comes in if the tap is closed. [1]"


def test_parts_that_cover_different_words_equally_are_all_quoted() -> None:
    # "How much" is searched as "price": the price of something else alone would be a wrong answer.
    text = "### Цены\n\nПрокат велосипеда — 300 ₽.\n\n### Залог\n\nВелосипед: 2 000 ₽.\n\n### Часы\n\nС девяти."
    draft = quoted("цена залог", text)
    assert "300 ₽" in draft.text
    assert "2 000 ₽" in draft.text
    assert "С девяти" not in draft.text


def test_only_the_entry_about_the_code_is_quoted() -> None:
    text = "E10 — вода не поступает. Откройте кран.\n\nE20 — вода не сливается. Очистите фильтр.\n\nE25 — сломан насос."
    assert quoted("ошибка E20", text).text == "E20 — вода не сливается. Очистите фильтр. [1]"


REMEDY = "E20 — сел аккумулятор. Замените его на CR2032.\n\n1. Откройте крышку.\n2. Вставьте аккумулятор."


@pytest.mark.parametrize(
    "text",
    [
        REMEDY,
        f"E10 — нет воды. Откройте кран.\n\n{REMEDY}\n\nE25 — сломан насос.",
        f"### Ошибка E20\n\n{REMEDY}\n\n### Ошибка E25\n\nСломан насос.",
        f"{REMEDY}\n\n**F05** Сломан насос.",
        f"{REMEDY}\n\nОшибка F05 означает поломку насоса.",
    ],
)
@pytest.mark.parametrize("heading", ["", "Ошибка E20 и другие", "Коды ошибок WM7"])
def test_an_entry_about_a_code_may_name_a_spare_part(text: str, heading: str) -> None:
    asked = document(text, "c1", heading=heading)
    answer = ExtractiveAnswerer().run(query="ошибка E20", documents=[asked])["answers"][0]
    assert to_draft(answer).text == f"{REMEDY} [1]"


@pytest.mark.parametrize(
    ("text", "quotation"),
    [
        ("### E20 — засорён сливной фильтр\n\nПромойте его.", "E20 — засорён сливной фильтр\n\nПромойте его."),
        (
            "### Ошибка E20\n\nПромойте фильтр.\n\n#### Модель X200\n\nИ насос.",
            "Промойте фильтр.\n\nМодель X200\n\nИ насос.",
        ),
    ],
)
def test_a_heading_is_quoted_if_it_says_more_than_the_question(text: str, quotation: str) -> None:
    assert quoted("что значит ошибка E20", text).text == f"{quotation} [1]"


def test_a_table_row_about_the_code_follows_the_header() -> None:
    head = "| код | причина |\n| --- | --- |\n"
    table = f"{head}| E10 | нет воды |\n| E20 | засор |\n| E25 | сломан насос |"
    for heading in ("", "Ошибка E20 и другие"):
        asked = document(table, "c1", heading=heading)
        answer = ExtractiveAnswerer().run(query="ошибка E20", documents=[asked])["answers"][0]
        assert to_draft(answer).text == f"{head}| E20 | засор | [1]"


@pytest.mark.parametrize(("first", "quotation"), [(0.7, "Курьер. [1]"), (0.6, "Самовывоз. [1]")])
def test_the_order_decides_between_near_ties_only(first: float, quotation: str) -> None:
    documents = [document("Курьер.", "c1", relevance=first), document("Самовывоз.", "c2", relevance=0.9)]
    answers = ExtractiveAnswerer(tie=0.25).run(query="доставка", documents=documents)["answers"]
    assert to_draft(answers[0]).text == quotation


def test_a_rejected_approach_is_left_out_and_named() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    draft = quoted("машина шумит", "Проверьте ножки. Стучать по корпусу можно.", rejected=[approach])
    assert draft.text == "Проверьте ножки. [1]"
    assert draft.withheld == (approach,)


@given(st.lists(texts, min_size=1, max_size=4).map("\n\n".join), texts)
def test_every_claim_is_a_quotation(text: str, query: str) -> None:
    draft = quoted(query, text)
    for claim in draft.claims:
        assert claim.text in text
        assert any(is_quoted(claim.text, one.passage) for one in draft.citations) or not claim.text.strip(".,!? ")


CODE_SECTION = "### Ошибка P07\n\nP07: жернова заклинило.\n\n#### Что делать\n\nУберите зёрна."
OTHER_SECTION = "### Гарантия\n\nДва года."


@pytest.mark.parametrize(
    ("text", "quotation", "heading"),
    [
        (
            f"{CODE_SECTION}\n\n{OTHER_SECTION}",
            "P07: жернова заклинило.\n\nЧто делать\n\nУберите зёрна.",
            "Ошибка P07",
        ),
        (
            f"### Жернова\n\nБывает ошибка P07. Уберите зёрна.\n\n{OTHER_SECTION}",
            "Бывает ошибка P07. Уберите зёрна.",
            "Жернова",
        ),
        (
            f"### Коды\n\n| код | причина |\n| --- | --- |\n| P07 | жернова |\n\n{OTHER_SECTION}",
            "| код | причина |\n| --- | --- |\n| P07 | жернова |",
            "Коды",
        ),
    ],
)
def test_a_quotation_about_a_code_ends_with_its_section(text: str, quotation: str, heading: str) -> None:
    draft = quoted("что означает ошибка P07", text)
    assert draft.text == f"{quotation} [1]"
    assert [one.passage.heading for one in draft.citations] == [heading]


def test_a_passage_headed_by_the_code_is_quoted_with_its_subsections() -> None:
    passage = document("P07: жернова заклинило.\n\n### Что делать\n\nУберите зёрна.", heading="Ошибка P07")
    draft = to_draft(ExtractiveAnswerer().run(query="ошибка P07", documents=[passage])["answers"][0])
    assert draft.text == "P07: жернова заклинило.\n\nЧто делать\n\nУберите зёрна. [1]"
    assert [one.passage.heading for one in draft.citations] == ["Ошибка P07"]
