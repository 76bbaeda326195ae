"""What is left of a message without the words that only say that somebody asks."""

import pytest
from hypothesis import given

from components.language.asking import to_the_point
from components.language.words import all_words
from tests.generated import texts


@pytest.mark.parametrize(
    ("message", "point"),
    [
        ("I want to know how to add a form.", "how to add a form."),
        ("I want to add a form.", "how to add a form."),
        ("I'm trying to add a form", "how to add a form"),
        ("Im having trouble adding a form. I need assistance with this issue.", "adding a form."),
        ("User is requesting assistance with adding a form.", "adding a form."),
        ("Hello! Could you please tell me how long delivery takes? Thank you in advance.", "how long delivery takes?"),
        ("I need guidance on setting up a form.", "setting up a form."),
        ("I want to return a bag, is it possible?", "return a bag, is it possible?"),
        ("Здравствуйте! Подскажите, пожалуйста, как вернуть товар?", "как вернуть товар?"),
        ("Добрый день, хотел бы узнать о сроках доставки. Спасибо!", "сроках доставки."),
        ("Мне нужно удалить аккаунт", "как удалить аккаунт"),
        ("Хочу вернуть сумку, можно ли без чека?", "вернуть сумку, можно ли без чека?"),
        ("У меня вопрос по доставке", "доставке"),
    ],
)
def test_what_only_says_that_somebody_asks_is_left_out(message: str, point: str) -> None:
    assert to_the_point(message) == point


@pytest.mark.parametrize(
    "message",
    [
        "Как вернуть товар?",
        "How do I return a bag?",
        "Спасибо",
        "Помогите",
        "Hello",
        "I need assistance with this issue.",
        "I like to ski",
        "Мне нужно, чтобы курьер позвонил",
        "Что делать, если курьер не приехал? Заказ оплачен.",
    ],
)
def test_a_message_that_says_nothing_else_stays_as_it_is(message: str) -> None:
    assert to_the_point(message) == message


@given(texts)
def test_nothing_is_made_up_and_something_is_left(message: str) -> None:
    point = to_the_point(message)
    assert bool(point.strip()) == bool(message.strip())
    assert set(all_words(point)) <= {*all_words(message), "how", "to", "как"}
