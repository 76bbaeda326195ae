"""Where a passage stands to what is asked."""

import pytest
from components.judge.place import is_contrary

from components.language.captions import HEADING_SEPARATOR
from tests.turns import passage, query


@pytest.mark.parametrize(
    ("asked", "heading", "text"),
    [
        ("Не помню пароль", "Как сменить пароль, если вы его помните", "Введите текущий пароль."),
        ("Почему не работает поиск?", "Как работает поиск", "Поиск читает название и текст."),
        ("The machine won't start", "Start the machine", "Press the button."),
        ("I do not remember my password", "If you remember your password", "Enter it twice."),
    ],
)
def test_a_section_for_the_contrary_case(asked: str, heading: str, text: str) -> None:
    assert is_contrary(passage(text, heading=f"Статья{HEADING_SEPARATOR}{heading}"), query(asked))
    assert not is_contrary(passage(text, title=heading), query(asked))


@pytest.mark.parametrize(
    ("asked", "heading", "text"),
    [
        ("Не помню пароль", "Сброс пароля", "Если вы не помните пароль, сбросьте его."),
        ("Помню старый пароль, как сменить?", "Как сменить пароль, если вы его помните", "Введите текущий."),
        ("Машина не включается", "Машина не включается", "Проверьте вилку."),
        ("Не работает поиск", "Как работает поиск", "Если поиск не работает, обновите страницу."),
        ("I can't log in", "Log in to the portal", "Enter your name."),
        ("Не подскажете, как сменить пароль?", "Как сменить пароль", "Введите текущий пароль."),
    ],
)
def test_a_section_that_is_for_the_case_or_says_nothing_of_it(asked: str, heading: str, text: str) -> None:
    assert not is_contrary(passage(text, heading=heading), query(asked))
