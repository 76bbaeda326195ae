"""Complexity of a question, and messages that ask several things."""

from components.understand.complexity import ComplexityClassifier
from components.understand.parts import parts_of


def test_several_questions_are_cut_into_parts() -> None:
    for message, parts in (
        ("сколько стоит доставка и можно ли вернуть чайник?", ("сколько стоит доставка", "можно ли вернуть чайник?")),
        ("сколько порошка сыпать и капсулу куда класть", ("сколько порошка сыпать", "капсулу куда класть")),
        (
            "Сколько стоит подключение? И болты мастер снимет?",
            ("Сколько стоит подключение?", "И болты мастер снимет?"),
        ),
        ("Сколько стоит доставка? И продаёте ли вы телефоны?", ("Сколько стоит доставка?", "продаёте ли вы телефоны?")),
        ("самовывоз бесплатный? и паспорт нужен?", ("самовывоз бесплатный?", "и паспорт нужен?")),
        ("есть с сушкой? сколько белья за раз сушит", ("есть с сушкой?", "сколько белья за раз сушит")),
        ("не могу войти и как поменять номер телефона", ("не могу войти", "как поменять номер телефона")),
        (
            "what does the 6kg cost and the 8kg and which one fits under a counter",
            ("what does the 6kg cost and the 8kg", "which one fits under a counter"),
        ),
        ("when are you open and is there parking", ("when are you open", "is there parking")),
        ("Сколько стоит доставка и рассрочка есть?", ("Сколько стоит доставка", "рассрочка есть?")),
        ("какая гарантия на чайник и что в неё не входит", ("какая гарантия на чайник", "что в неё не входит")),
        (
            "what is the difference between the E10 and the E20 and which filter is blocked",
            ("what is the difference between the E10 and the E20", "which filter is blocked"),
        ),
        ("Чем E10 отличается от E20?", ("E10", "E20")),
        ("В чём разница между «Эко» и «Быстрой»?", ("Эко", "Быстрой")),
        ("What is the difference between the E10 and the E20?", ("E10", "E20")),
        ("courier vs pickup", ("courier", "pickup")),
        ("E20 и E401 что значат?", ("E20 что значат?", "E401 что значат?")),
        ("What do E20, E25 and E401 mean?", ("What do E20 mean?", "What do E25 mean?", "What do E401 mean?")),
    ):
        assert parts_of(message) == parts


def test_one_question_is_left_whole() -> None:
    for message in (
        "",
        "Как узнать, где и когда привезут заказ?",
        "Деньги списались дважды, почему и что делать?",
        "Что делать, если нет чека и коробки?",
        "Можно ли вернуть, если чек и коробка есть?",
        "на пятый поднимут? лифта нету",
        "wait!! the door is stuck",
        "The machine doesn't drain and what should I check?",
        "болты сняли сразу. а каким ключом ножки крутить",
        "how much is the installation and how long does it take",
        "Сначала было E20, теперь E30",
        "The machine is loud and the drum is new, what do I do?",
    ):
        assert parts_of(message) == ()


def test_a_question_that_refers_to_another_is_cut_off_on_request() -> None:
    message = "how much is the installation and how long does it take"
    assert parts_of(message, with_references=True) == ("how much is the installation", "how long does it take")


def classified(question: str) -> str:
    return ComplexityClassifier().run(query=question)["complexity"]


def test_questions_are_classified_by_complexity() -> None:
    for question, complexity in (
        ("E20", "simple"),
        ("Сколько стоит доставка?", "simple"),
        ("How do I reset my password?", "simple"),
        ("Чем отличается рассрочка от кредита?", "complex"),
        ("Сколько стоит установка? А доставка входит?", "complex"),
        ("E20 и E25 — что делать?", "complex"),
        ("when are you open and is there parking", "complex"),
        ("а если банк откажет", "simple"),
        ("What is the difference between the two plans, and how do I switch?", "complex"),
        ("и как?", "unknown"),
        ("???", "unknown"),
    ):
        assert classified(question) == complexity


def test_the_words_of_the_customer_decide() -> None:
    outputs = ComplexityClassifier().run(query="доставка", question="Чем отличается доставка от самовывоза?")
    assert outputs == {"query": "доставка", "complexity": "complex"}
