"""Removal of words that only mark a message as a question."""

from hypothesis import given

from components.language.asking import to_the_point
from components.language.words import all_words
from tests.generated import texts


def test_what_only_says_that_somebody_asks_is_left_out() -> None:
    for message, point in (
        ("Hello! Could you please tell me how long delivery takes? Thank you in advance.", "how long delivery takes?"),
        ("Please explain the invoice.", "explain the invoice."),
        ("Здравствуйте! Подскажите, пожалуйста, как вернуть товар?", "как вернуть товар?"),
        ("hey bot, where is my order", "where is my order"),
        ("Привет, бот! Где мой заказ?", "Где мой заказ?"),
        ("Добрый день, расскажите о сроках доставки. Спасибо!", "о сроках доставки."),
        ("Thanks, and how much is delivery?", "how much is delivery?"),
        ("ok great, so where are you?", "where are you?"),
        ("Thanks, and for the E20?", "and for the E20?"),
        ("Понял, спасибо. где магазин?", "где магазин?"),
        ("спасибо, и ещё вопрос: а можно оплатить картой", "можно оплатить картой"),
    ):
        assert to_the_point(message) == point


def test_a_message_that_says_nothing_else_stays_as_it_is() -> None:
    for message in (
        "Как вернуть товар?",
        "How do I return a bag?",
        "Спасибо",
        "ok tried that. still locked",
        "Great, three weeks of waiting, where is it?",
        "Отлично, три недели жду заказ, где он?",
        "Хорошо ли сушит сушилка?",
        "thanks, you helped a lot",
        "Помогите",
        "Помогите!",
        "Hello",
        "I need assistance with this issue.",
        "I like to ski",
        "Мне нужно, чтобы курьер позвонил",
        "Что делать, если курьер не приехал? Заказ оплачен.",
    ):
        assert to_the_point(message) == message


@given(texts)
def test_nothing_is_made_up_and_something_is_left(message: str) -> None:
    point = to_the_point(message)
    assert bool(point.strip()) == bool(message.strip())
    assert set(all_words(point)) <= {*all_words(message), "how", "to", "как"}
