import pytest
from components.language.questions import AnswerType, answer_type, asked, holds
from hypothesis import given

from tests.generated import texts


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Когда привезут заказ?", "date"),
        ("В каком году основан магазин?", "date"),
        ("Сколько стоит доставка?", "number"),
        ("Какова стоимость ремонта?", "number"),
        ("Кто отвечает за гарантию?", "name"),
        ("Где пункт выдачи?", "name"),
        ("Как вернуть товар?", "steps"),
        ("Ошибка E20, что делать?", "steps"),
        ("Есть ли гарантия?", "other"),
        ("How many days do I have?", "number"),
        ("When does the shop open?", "date"),
        ("How do I reset the password?", "steps"),
        ("Where is my order?", "name"),
        ("Is delivery free?", "other"),
        ("Since when is it open?", "date"),
        ("Why does it fail when it is hot?", "other"),
        ("Import fails. When I import a file, error null is shown. How do I fix this?", "steps"),
        ("Купил чайник вчера, где и всегда. Можно вернуть?", "other"),
    ],
)
def test_answer_type(question: str, kind: AnswerType) -> None:
    assert answer_type(question) == kind
    assert answer_type(question.upper()) == kind


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Как вернуть товар?", "Как вернуть товар?"),
        ("Error 13 in the log. What does it mean?", "What does it mean?"),
        ("Не приходит код. Жду час.", "Не приходит код. Жду час."),
        ("Does it support TLS? We use it when we can.", "Does it support TLS?"),
    ],
)
def test_the_sentence_that_asks(question: str, sentence: str) -> None:
    assert asked(question) == sentence


@pytest.mark.parametrize(
    ("kind", "with_it", "without_it"),
    [
        ("date", "Вернуть можно в течение 14 дней.", "Вернуть можно в магазине."),
        ("number", "Гарантия действует два года.", "Гарантия действует."),
        ("name", "Звоните в отдел Петровой.", "звоните в отдел"),
    ],
)
def test_a_sentence_holds_the_answer_type_or_not(kind: AnswerType, with_it: str, without_it: str) -> None:
    assert holds(kind, with_it)
    assert not holds(kind, without_it)


@given(texts)
def test_steps_and_other_things_have_no_outward_form(text: str) -> None:
    assert holds("steps", text)
    assert holds("other", text)
