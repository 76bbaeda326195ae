"""What a sentence must hold to answer a question of its kind."""

import pytest
from components.judge.demands import demand, shows_steps
from components.language.question_kind import kind_of

from components.language.words import stems


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        ("Сколько складов у магазина?", "У магазина 4 склада.", "Магазин работает 4 года."),
        (
            "Сколько складов у магазина?",
            "У магазина может быть только один склад.",
            "Один склад в другой не поместится.",
        ),
        ("Сколько складов у магазина?", "Число складов магазина не ограничено.", "Имён товара несколько."),
        ("Сколько складов у магазина?", "У магазина сотни складов.", "1. Откройте склад 1С."),
        ("Сколько действует ссылка?", "До 30 минут.", "Шаг 2."),
        ("How many stores does the shop have?", "The shop has twelve stores.", "The shop has been open for 12 years."),
        ("Какую версию программы поставить?", "Поставьте версию 5.2.", "Поставьте новую версию."),
        ("Когда откроют склад?", "Склад откроют после ремонта.", "Склад открывают сторожа."),
        (
            "Какие способы оплаты есть?",
            "Принимаем карты, наличные и переводы.",
            "Оплату принимают, как и везде, в кассе.",
        ),
        ("Какие способы оплаты есть?", "Оплата включает перевод.", "Оплата прошла."),
        ("Соответствует ли склад закону?", "Склад соответствует закону.", "Соответствует описанию в каталоге."),
        ("Как с вами связаться?", "Звоните: +7 (831) 000-00-00.", "Магазин открыт с утра."),
        ("How do I contact the shop?", "Call us from 9 to 18.", "The shop opens in the morning."),
        ("Что такое пони?", "Пони — это маленькая лошадь.", "Пони стоит в конюшне."),
        ("What is a pony?", "A pony is a small horse.", "Feed the pony twice."),
    ],
)
def test_a_sentence_must_hold_what_is_demanded(question: str, good: str, bad: str) -> None:
    says = demand(kind_of(question), question, dict.fromkeys(stems(question), 1.0))
    assert says is not None
    assert says(good)
    assert not says(bad)


def test_the_name_of_a_product_is_no_measure() -> None:
    question = "Сколько объектов читает один запрос к Object Storage?"
    says = demand("quantity", question, dict.fromkeys(stems(question), 1.0))
    assert says is not None
    assert not says("Object Storage копирует 100 МБ каждую минуту.")


@pytest.mark.parametrize(
    "question", ["Как рассчитать вес?", "Какой фильтр выбрать?", "Деньги вернут на карту или на счёт?"]
)
def test_some_questions_demand_steps_or_nothing(question: str) -> None:
    says = demand(kind_of(question), question, {})
    assert says is None or says("Нажмите кнопку.")
    assert shows_steps("Нажмите кнопку.")
