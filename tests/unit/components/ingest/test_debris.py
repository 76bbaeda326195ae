"""What exports leave behind: tables of another markup, words glued at the ends of blocks."""

import pytest

from components.ingest.debris import unglued, with_tables
from components.ingest.markdown import markdown_blocks

DECLARED = """[cols="1,2", options="header"]
|===
|Тариф
|Сколько стоит

|Лёгкий
|500 рублей
в месяц

2+|Скидок нет
|===

Ниже."""
INLINE = """|===
|Код |Значение

|A1 |включено
|A2 |выключено
|==="""


def test_a_table_of_asciidoc_is_read_as_one() -> None:
    table, below = markdown_blocks(with_tables(DECLARED))
    assert (table.kind, below.text) == ("table", "Ниже.")
    assert table.text.splitlines() == [
        "| Тариф | Сколько стоит |",
        "| --- | --- |",
        "| Лёгкий | 500 рублей в месяц |",
        "| Скидок нет |  |",
    ]


def test_the_first_line_says_how_many_columns_there_are() -> None:
    (table,) = markdown_blocks(with_tables(INLINE))
    assert table.text.splitlines()[2:] == ["| A1 | включено |", "| A2 | выключено |"]


@pytest.mark.parametrize("text", ["|===\n|===", "|===\nбез ячеек\n|===", "|===\n|a", "a | b |=== c"])
def test_other_text_is_left_unchanged(text: str) -> None:
    assert with_tables(text) == text


GLUED = (
    "Refunding a paymentIssue refunds from your dashboard.When you issue a refund, the payment goes back."
    "Cancelling itRefunding a deposit is final. You cannot undo it. Refunding takes a week.PhoneWatch keeps PayPal."
)


def test_words_glued_between_blocks_are_separated() -> None:
    assert unglued(GLUED).split("\n\n") == [
        "Refunding a payment",
        "Issue refunds from your dashboard.",
        "When you issue a refund, the payment goes back.",
        "Cancelling it",
        "Refunding a deposit is final. You cannot undo it. Refunding takes a week.",
        "PhoneWatch keeps PayPal.",
    ]


def test_sentences_and_remarks_that_run_into_each_other_are_taken_apart() -> None:
    text = (
        "Read FAQs (FAQs)Blocking time is easy.If you're away, block it.Tip:Keep in mind the fee. FAQsClick FAQsClick"
    )
    assert unglued(text).split("\n\n") == [
        "Read FAQs (FAQs)",
        "Blocking time is easy.",
        "If you're away, block it.",
        "Tip: Keep in mind the fee. FAQs",
        "Click FAQs",
        "Click",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Use `NotConfigured` or not, if it is configured. A company domain is CompanyDomain.You see.",
        "Пишите на адрес (mailto:CloudSecurity@example.com), облако (mailto:CloudSecurity@example.com).",
        "Сервис Яндекс.Метрика и МегаФон работают. Метрика нужна.",
        f"```\n{GLUED}\n```",
        "Open site.Open the site. Open it.",
    ],
)
def test_names_and_code_stay_as_they_are_written(text: str) -> None:
    assert unglued(text) == text


def test_an_aside_that_points_to_what_an_export_has_lost_is_dropped() -> None:
    (block,) = markdown_blocks("Тариф задан в файле (рисунок %number), он один (подробнее — в разделе %text).")
    assert block.text == "Тариф задан в файле, он один."
