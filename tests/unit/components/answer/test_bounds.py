"""Conditions that stand above the steps come with them, and so does a heading that says for whom they are."""

import pytest
from components.answer.bounds import qualified

from components.judge.coverage import prepare
from tests.turns import passage, turn
from tests.unit.components.answer.test_extractive import answer

STEPS = "1. Откройте «Сети».\n2. Нажмите «Имя»."
TABS = f"Приложение\n\n{STEPS}\n\nКомандная строка\n\n1. Откройте консоль.\n2. Введите имя."


def guide(above: str, heading: str = "Имя сети") -> str:
    shown = answer("как поменять имя сети в приложении", passage(f"{above}\n\n{TABS}", heading=heading)).text
    assert "Нажмите «Имя»." in shown
    assert "консоль" not in shown
    return shown


@pytest.mark.parametrize(
    "condition",
    [
        "- Имя нельзя вернуть.\n- Пока сеть занята, имя изменить нельзя.",
        "По умолчанию имя латинское. Чтобы писать его кириллицей, обратитесь в поддержку.",
        "Условия для смены имени:\n\n- сеть работает;\n- вы её владелец.",
    ],
)
def test_conditions_above_the_steps_are_shown(condition: str) -> None:
    shown = guide(f"Имя видят соседи.\n\n{condition}")
    assert all(line in shown for line in condition.split("\n"))
    assert "соседи" not in shown
    assert shown.index(condition[:20]) < shown.index("Откройте «Сети».")
    assert f"{condition}\n\n" in shown
    assert shown.count("[1]") == 1


def test_a_list_of_conditions_stands_apart_from_the_steps() -> None:
    source = passage(f"- Имя нельзя вернуть.\n\n{TABS.replace('Приложение', 'Сети')}", heading="Имя сети")
    assert "- Имя нельзя вернуть.\n\n1. Откройте «Сети»." in answer("как поменять имя сети", source).text


@pytest.mark.parametrize(
    "above",
    [
        "Имя сети видят соседи.",
        "Имя сети — это слово, которое должны видеть на общих условиях только соседи.",
        "Чтобы поменять имя, если оно надоело:",
        "Проверьте, если не уверены:\n\n```sh\nnet name\n```",
        f"Имя нельзя вернуть. {'Так решили соседи по этажу. ' * 30}",
    ],
)
def test_what_says_no_condition_or_says_it_at_length_is_left_out(above: str) -> None:
    assert guide(above).startswith("Приложение\n\n1. Откройте «Сети».")


def test_a_heading_for_some_opens_the_steps() -> None:
    for_persons = passage(STEPS, heading="Сети › Смена имени для частных лиц")
    assert answer("как поменять имя", for_persons).text == f"Смена имени для частных лиц:\n\n{STEPS} [1]"
    assert answer("как поменять имя для частных лиц", for_persons).text == f"{STEPS} [1]"


@pytest.mark.parametrize(
    ("heading", "question", "shown"),
    [
        ("Возврат без чека", "как вернуть товар", "Возврат без чека"),
        ("Returns without a receipt", "how to return goods", "Returns without a receipt"),
        ("Возврат товара", "как вернуть товар", ""),
        ("Returns › Refunds", "how to return goods", ""),
        ("Как вернуть товар без чека?", "как вернуть товар", ""),
        ("", "как вернуть товар", ""),
    ],
)
def test_a_heading_is_named_where_it_says_more_than_the_question(heading: str, question: str, shown: str) -> None:
    assert qualified(heading, prepare(turn(question).query).weights) == shown
