"""What a text must hold to answer a question of its kind."""

import pytest
from components.judge.answer_kind import answers_kind
from components.language.question_kind import QuestionKind, kind_of

from components.language.words import stems

_CASES: list[tuple[QuestionKind, str, str, str]] = [
    (
        "quantity",
        "Сколько времени занимает доставка?",
        "Доставка занимает от двух до пяти дней.",
        "Доставка стоит 300 рублей.",
    ),
    ("quantity", "Сколько стоит доставка?", "Доставка стоит 300 рублей.", "Доставка занимает 5 дней."),
    ("quantity", "Сколько стоит доставка?", "Доставка в город бесплатна.", "Доставка бывает по будням и по субботам."),
    ("quantity", "Какой размер у барабана?", "Барабан вмещает 45 см белья в ширину.", "Барабан сделан из стали."),
    ("quantity", "Сколько заказов можно оформить?", "Оформить можно до 5 заказов.", "Заказы оформляют на сайте."),
    ("quantity", "How long does delivery take?", "Delivery takes 3 business days.", "Delivery costs $20."),
    ("quantity", "Как часто чистят фильтр?", "Фильтр чистят раз в полгода.", "Фильтр чистят щёткой."),
    (
        "yesno",
        "Можно ли оплатить заказ частями?",
        "Оплатить заказ частями можно при сумме от 5 000 рублей.",
        "Оплата заказа — перевод денег магазину.",
    ),
    (
        "yesno",
        "Does the shop support instalments?",
        "The shop supports instalments for orders over $50.",
        "Instalments: parts of a price, paid one after another.",
    ),
    (
        "howto",
        "Как вернуть товар?",
        "1. Упакуйте товар.\n2. Отнесите его в пункт возврата.",
        "Возврат товара — передача его магазину.",
    ),
    ("howto", "How do I return an order?", "Open the order and click Return.", "A return is the way back of an order."),
    (
        "why",
        "Почему не сливается вода?",
        "Вода не сливается, если засорился фильтр.",
        "Вода сливается после стирки.",
    ),
    ("where", "Где посмотреть заказ?", "Заказ показан в разделе «Мои заказы».", "Заказ собирают два дня."),
    (
        "what_is",
        "Что такое бонусный счёт?",
        "Бонусный счёт — это скидки, накопленные за покупки.",
        "За покупки начисляют бонусы на счёт.",
    ),
    (
        "what_is",
        "В чём разница между доставкой и самовывозом?",
        "Самовывоз отличается от доставки тем, что он бесплатный.",
        "Доставка и самовывоз.",
    ),
    ("list", "Какие способы оплаты есть?", "Принимаем карты, наличные и переводы.", "Оплата при получении."),
]


@pytest.mark.parametrize(("kind", "question", "good", "bad"), _CASES)
def test_each_kind_of_question_demands_its_kind_of_answer(
    kind: QuestionKind, question: str, good: str, bad: str
) -> None:
    assert kind_of(question) == kind
    weights = dict.fromkeys(stems(question), 1.0)
    assert answers_kind(kind, question, good, "", weights)
    assert not answers_kind(kind, question, bad, "", weights)


@pytest.mark.parametrize("kind", ["which", "other"])
def test_kinds_without_a_visible_form_are_always_answered(kind: QuestionKind) -> None:
    assert answers_kind(kind, "Какой фильтр выбрать?", "Всё равно.", "", {})


@pytest.mark.parametrize(
    "question", ["Деньги вернут на карту или на счёт?", "What is the name of the founder of the shop?"]
)
def test_a_question_that_only_resembles_a_kind_demands_nothing(question: str) -> None:
    weights = dict.fromkeys(stems(question), 1.0)
    assert answers_kind(kind_of(question), question, "Так.", "", weights)


def test_a_place_may_be_a_name() -> None:
    weights = dict.fromkeys(stems("Где находится мастерская?"), 1.0)
    assert answers_kind("where", "Где находится мастерская?", "Мастерская находится в Твери.", "", weights)
    assert not answers_kind("where", "Где находится мастерская?", "Мастерская находится далеко.", "", weights)


def test_an_amount_about_something_else_is_no_answer() -> None:
    question = "Почему машина стучит при отжиме белья?"
    weights = dict.fromkeys(stems(question), 1.0)
    other = "Если товар возвращён, деньги поступят на карту."
    assert not answers_kind("why", question, other, "", weights)
    assert answers_kind("why", question, "Если барабан гремит, снимите болты.", "Машина стучит при отжиме", weights)


def test_a_procedure_for_the_object_answers_whether_it_is_possible() -> None:
    question = "Можно ли подключить машину к колодцу?"
    weights = dict.fromkeys(stems(question), 1.0)
    steps = "1. Откройте кран.\n2. Наденьте шланг."
    assert answers_kind("yesno", question, steps, "Как подключить машину к колодцу", weights)
    assert not answers_kind("yesno", question, steps, "Как подключить машину", weights)


def test_a_heading_that_repeats_the_question_is_no_amount() -> None:
    question = "Сколько стоит установка?"
    weights = dict.fromkeys(stems(question), 1.0)
    assert not answers_kind("quantity", question, "Её делает мастер.", question, weights)


def test_a_clock_tells_the_time_and_a_necessity_what_to_do() -> None:
    asked = "Сколько времени было на часах?"
    weights = dict.fromkeys(stems(asked), 1.0)
    assert answers_kind("quantity", asked, "Времени на часах оставалось 4:51.", "", weights)
    asked = "Что необходимо сделать для возврата?"
    weights = dict.fromkeys(stems(asked), 1.0)
    assert answers_kind("howto", asked, "Закон говорит о необходимости чека для возврата.", "", weights)


def test_what_only_sends_elsewhere_is_no_answer() -> None:
    question = "Соответствует ли магазин требованиям закона?"
    weights = dict.fromkeys(stems(question), 1.0)
    caption = "Соответствие магазина требованиям закона"
    elsewhere = f"{caption}\n\nИнформация о требованиях приведена в соответствующем разделе. [1]"
    assert not answers_kind("yesno", question, elsewhere, caption, weights)
    assert answers_kind("yesno", question, f"Магазин соответствует требованиям. {elsewhere}", caption, weights)
    link = "For further discussion on this topic, visit this thread: https://forum.example/1 [1]"
    assert not answers_kind("why", "Why is the connection refused?", link, "", {"connect": 1.0})


def test_where_to_read_is_told_by_a_source() -> None:
    question = "Где узнать о скидках для партнёров?"
    weights = dict.fromkeys(stems(question), 1.0)
    assert not answers_kind("where", question, "Партнёры получают скидку на решения Пристани.", "", weights)
    assert answers_kind("where", question, "Скидки перечислены на странице партнёров.", "", weights)


def answered(question: str, text: str, head: str = "") -> bool:
    """Whether a text answers a question whose words weigh the same."""
    return answers_kind(kind_of(question), question, text, head, dict.fromkeys(stems(question), 1.0))


def test_yes_or_no_is_said_of_all_that_is_asked() -> None:
    question = "Можно ли вернуть билет на концерт в кассе?"
    assert answered(question, "Вернуть билет на концерт можно в любой кассе.")
    assert not answered(question, "Билет можно купить на сайте.")


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Можно ли оплатить заказ через браузер?", "Оплатить заказ можно в приложении.", False),
        ("Можно ли оплатить заказ через браузер?", "Оплатить заказ можно и в браузере.", True),
        ("Can I pay for an order without a card?", "You can pay for an order by invoice.", False),
        ("Можно ли вернуть товар через 14 дней?", "Вернуть товар можно через 30 дней.", False),
        ("Можно ли вернуть товар через 14 дней?", "Вернуть товар можно через 14 дней.", True),
    ],
)
def test_yes_or_no_holds_the_means_and_the_numbers(question: str, text: str, expected: bool) -> None:
    assert answered(question, text) is expected


def test_a_heading_that_mentions_a_thing_does_not_say_what_it_is() -> None:
    question = "Что такое бонусный счёт?"
    assert not answered(question, "1. Откройте магазин.\n2. Войдите.", "Как начать работать с бонусным счётом")
    assert answered(question, "Скидки, накопленные за покупки.", "Программа\nБонусный счёт")
    assert answered(question, "Скидки, накопленные за покупки.", "Вопросы\nЧто такое бонусный счёт?")
    assert not answered(question, "Доставка — это поездка к покупателю.", "Бонусный счёт и доставка товаров")


def test_a_list_of_questions_answers_none() -> None:
    asked_back = "- Какой товар вы ищете?\n- Где он стоял?\n- Кто его видел?"
    assert not answered("Какие товары есть на складе?", asked_back, "Склад")


def test_an_aside_that_sends_elsewhere_leaves_the_sentence() -> None:
    assert answered("Какой фильтр выбрать?", "Выберите фильтр по размеру (см. раздел о размерах).")
    assert not answered(
        "Как выбрать фильтр?", "Подробнее о том, как выбрать фильтр, можно узнать в разделе о фильтрах."
    )


def test_the_question_said_again_answers_nothing() -> None:
    question = "Где найти сведения о возврате товара с витрины магазина в Твери после ремонта без чека продавца?"
    again = "Возврат товара с витрины магазина в Твери после ремонта без чека продавца и сведения о нём можно найти."
    assert not answered(question, again)
    assert answered(question, f"{again} Сведения лежат в папке у дежурного на втором этаже рядом с лестницей.")
