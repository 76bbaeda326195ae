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
        "Instalments are supported for orders over $50.",
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
    assert answers_kind("yesno", question, "1. Откройте кран.\n2. Наденьте шланг.", "Как подключить машину", weights)


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
