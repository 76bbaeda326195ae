"""Names that a question asks about."""

from dataclasses import replace

import pytest
from components.judge.named import names_in, rare_names

from components.turn import Query
from tests.turns import passage, query


def rare(text: str) -> Query:
    """The query of a question whose words are all rare."""
    parsed_query = query(text)
    return replace(parsed_query, weights=dict.fromkeys(parsed_query.weights, 5.0))


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Как подключить Terraform к складу?", ("terraform",)),
        ("Можно ли платить через Apple Pay?", ("appl", "pay")),
        ("Как запустить задачи (jobs)?", ()),
        ("Как подключить стиралку?", ()),
        ("Как подключить стиралку? Пишите на ivan@mail.ru", ()),
        ("How do I connect Terraform?", ()),
        ("Terraform " + "и ещё много слов обо всём " * 8, ()),
    ],
)
def test_names_are_latin_words_of_a_short_russian_question(question: str, named: tuple[str, ...]) -> None:
    assert rare_names(rare(question)) == named


def test_common_and_doubtful_words_are_no_names() -> None:
    found_names = rare("Как подключить Terraform?")
    assert rare_names(replace(found_names, weights={**found_names.weights, "terraform": 1.0})) == ()
    assert rare_names(replace(found_names, doubtful=frozenset({"terraform"}))) == ()


def test_a_name_may_stand_in_title_heading_or_text() -> None:
    assert names_in(("terraform", "docker"), [passage("Запуск.", title="Terraform")]) == {"terraform"}
    assert names_in(("terraform",), [passage("Запуск.", heading="Работа в Terraform")]) == {"terraform"}
    assert names_in(("terraform",), [passage("Запуск.")], "Terraform не нужен.") == {"terraform"}
    assert names_in(("terraform",), [passage("Запуск Kubernetes.")]) == frozenset()


@pytest.mark.parametrize(
    ("asked", "said", "same"),
    [
        ("arpnet", "arpanet", True),
        ("terraforms", "terraform", True),
        ("terraform", "terrafarm", False),
        ("mysql", "nosql", False),
    ],
)
def test_a_letter_too_many_or_too_few_makes_no_other_name(asked: str, said: str, same: bool) -> None:
    assert bool(names_in([asked], [passage(f"Сеть {said} работает.")])) is same
