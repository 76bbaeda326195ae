"""What captions say about the text below them."""

import pytest

from components.language.captions import (
    is_abstract,
    is_cause,
    is_contents,
    is_example,
    is_later_step,
    is_preparation,
    is_question,
    is_resolution,
    is_statement,
    leads_elsewhere,
)


@pytest.mark.parametrize(
    "caption", ["Ответ", "Решение", "РЕШЕНИЕ:", "Answer", "RESOLVING THE PROBLEM", "REMEDIATION/FIXES"]
)
def test_a_solution(caption: str) -> None:
    assert is_resolution(caption)


def test_what_states_a_problem_and_what_opens_a_text() -> None:
    assert all(map(is_statement, ["QUESTION", "PROBLEM(ABSTRACT)", "Симптомы:"]))
    assert not any(map(is_statement, ["Проблемы с доставкой", "ABSTRACT", "Questions about returns"]))
    assert all(map(is_abstract, ["ABSTRACT", "Summary:", "Введение"]))
    assert not any(map(is_abstract, ["Summary of fees", "Обзор тарифов"]))


@pytest.mark.parametrize(("caption", "expected"), [("CAUSE", True), ("Причины", True), ("Причина возврата", False)])
def test_a_cause(caption: str, expected: bool) -> None:
    assert is_cause(caption) is expected


@pytest.mark.parametrize("caption", ["Ответственность", "Решение о возврате", "Answering machines", "Question", ""])
def test_no_solution(caption: str) -> None:
    assert not is_resolution(caption)


@pytest.mark.parametrize(
    "caption", ["В этой статье:", "Содержание", "In this article, learn how to:", "On this page", "Contents"]
)
def test_contents(caption: str) -> None:
    assert is_contents(caption)


@pytest.mark.parametrize("caption", ["В этой статье описан возврат.", "Содержание животных", "Contents of the box"])
def test_no_contents(caption: str) -> None:
    assert not is_contents(caption)


@pytest.mark.parametrize(
    "caption",
    [
        "См. также",
        "Смотрите также:",
        "See also",
        "Related articles",
        "REFERENCES",
        "Что дальше?",
        "Если проблема осталась",
    ],
)
def test_links(caption: str) -> None:
    assert leads_elsewhere(caption)


@pytest.mark.parametrize("caption", ["Что дальше делать с заявкой", "Related costs", "Next steps for refunds"])
def test_no_links(caption: str) -> None:
    assert not leads_elsewhere(caption)


def test_what_shows_prepares_and_asks() -> None:
    assert all(map(is_example, ["Пример вывода команды", "Примеры", "Example output:", "Sample file"]))
    assert not any(map(is_example, ["Примерка", "Вывод команды", "Examples are listed. Read them."]))
    assert all(map(is_preparation, ["Перед началом работы", "1. Подготовительные шаги", "Требования", "Prerequisites"]))
    assert not any(map(is_preparation, ["Требования к дому", "Подготовка счёта", "Before you pay"]))
    assert all(map(is_later_step, ["2. Подключите диск", "Шаг 3. Проверьте", "Step 2: Check"]))
    assert not any(map(is_later_step, ["1. Создайте диск", "Диск 2", "152-ФЗ", "3.3 литра", "2 способа"]))
    assert is_question("Можно ли вернуть билет?")
    assert not is_question("Возврат билета")
