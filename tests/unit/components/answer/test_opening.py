"""An answer to a yes/no question opens with yes or no where the quoted text says so, and only there."""

from dataclasses import replace

import pytest

from components.answer.extractive import ExtractiveAnswerer
from components.judge.verifier import repaired, without
from components.turn import Draft, Passage
from tests.turns import passage, turn


def draft(question: str, *passages: Passage, locale: str = "ru") -> Draft:
    asked = replace(turn(question, *passages), locale=locale)
    written = ExtractiveAnswerer().run(asked)["turn"].draft
    assert written is not None
    return written


@pytest.mark.parametrize(
    ("question", "said", "opening"),
    [
        ("Можно ли вернуть сумку?", "Вернуть сумку можно. Деньги придут на карту.", "Да."),
        ("Можно ли вернуть сумку?", "Вернуть сумку нельзя. Её можно обменять.", "Нет."),
        ("Можно ли вернуть сумку?", "Вернуть сумку можно, если цела бирка.", "Да, если цела бирка."),
        ("Можно ли вернуть сумку?", "Вернуть сумку можно. Однако нужен чек.", "Да, но с условием:"),
        ("Можно ли вернуть сумку?", "Да, вернуть сумку можно.", ""),
        ("Можно ли вернуть сумку?", "Вернуть сумку помогут на кассе.", ""),
        ("Можно ли вернуть сумку в другом городе?", "Вернуть сумку можно.", ""),
        ("Можно ли вернуть сумку без чека?", "Вернуть сумку можно.", ""),
        ("Нельзя вернуть сумку?", "Вернуть сумку нельзя.", ""),
        ("Можно ли обменять сумку?", "Можно купить другую сумку.", ""),
        ("Можно ли вернуть сумку и бирку?", "Вернуть сумку можно.", ""),
        ("Как вернуть сумку?", "Вернуть сумку можно на кассе.", ""),
        ("Нужно ли платить за доставку?", "За доставку платить не нужно.", "Нет."),
    ],
)
def test_a_text_that_says_yes_or_no_is_opened_with_it(question: str, said: str, opening: str) -> None:
    written = draft(question, passage(said))
    assert written.opening == opening
    assert written.text.startswith(f"{opening} {said[:12]}" if opening else said[:12])


def test_a_heading_does_not_lend_a_sentence_the_action_that_was_asked_about() -> None:
    source = passage("В бакете можно защитить удалённые объекты.", heading="Восстановить удалённые объекты в бакете")
    assert draft("Можно ли восстановить удалённые объекты?", source).opening == ""


def test_an_answer_begins_with_what_decides() -> None:
    article = (
        "Магазин продаёт сумки. Доставка занимает три дня.\n\nВернуть сумку можно:\n\n- на кассе;\n- в пункте выдачи."
    )
    written = draft("Можно ли вернуть сумку?", passage(article))
    assert written.text == "Да. Вернуть сумку можно:\n\n- на кассе;\n- в пункте выдачи. [1]"


def test_what_decides_keeps_the_sentence_that_it_goes_on_from() -> None:
    article = "Магазин продаёт сумки. Бирка должна быть цела. При этом вернуть сумку можно."
    written = draft("Можно ли вернуть сумку?", passage(article))
    assert written.text == "Бирка должна быть цела. При этом вернуть сумку можно. [1]"


def test_in_english() -> None:
    written = draft("Can I return a bag?", passage("You can return a bag only if it is new."), locale="en")
    assert written.text == "Yes, only if it is new. You can return a bag only if it is new. [1]"


def test_instructions_under_a_heading_that_names_the_thing_say_yes() -> None:
    guide = passage("1. Откройте профиль.\n2. Введите новый пароль.", title="Пароль", heading="Как сменить пароль")
    assert draft("Можно ли сменить пароль?", guide).text.startswith("Да.\n\n1. Откройте профиль.")
    assert draft("Можно ли сменить пароль бесплатно?", guide).opening == ""


def test_the_opening_goes_with_a_claim_that_is_dropped() -> None:
    written = draft("Можно ли вернуть сумку?", passage("Вернуть сумку можно. Деньги придут на карту."))
    assert without({0}, written) == "Деньги придут на карту. [1]"
    assert repaired(written, ()).opening == ""
