"""Follow-up questions: detection, completion, and questions that are not changed."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.language.identifiers import codes
from components.language.words import stems
from components.turn import Exchange, Outcome
from components.understand.followup import chosen_option, last_topic, leaning, standalone
from tests.generated import texts


def resolved(question: str, *before: str, outcome: Outcome = "answered") -> str:
    return standalone(question, [Exchange(one, outcome) for one in before])


@pytest.mark.parametrize("question", ["а если E10?", "Где он находится?", "Бесплатно?", "And outside it?", "How much?"])
def test_fragments_lean_on_the_history(question: str) -> None:
    assert leaning(question) != "no"


@pytest.mark.parametrize(
    "question",
    [
        "Как отменить заказ?",
        "Что означает ошибка E20?",
        "E25",
        "Can I pay by card on delivery?",
        "А как оплатить заказ картой в магазине?",
        "Is there an instalment plan?",
    ],
)
def test_complete_questions_do_not_lean_on_the_history(question: str) -> None:
    assert leaning(question) == "no"


def test_a_remark_that_was_not_answered_keeps_the_topic_before_it() -> None:
    stuck, dry = Exchange("the door is stuck", "refused"), Exchange("no water visible", "refused")
    assert last_topic([stuck, dry]) == "the door is stuck no water visible"
    assert last_topic([stuck, Exchange("ok", "irrelevant")]) == "the door is stuck"
    assert last_topic([stuck, Exchange("no water visible", "answered")]) == "no water visible"
    complete = Exchange("change the delivery address of a paid order", "refused")
    assert last_topic([stuck, complete]) == complete.question
    assert last_topic([]) == ""


@pytest.mark.parametrize(
    "question",
    [
        "бесплатно?",
        "is that free?",
        "да мигает и пищит",
        "yes it flashes and beeps",
        "what is in there",
        "а если у меня есть чек?",
        "and if there is no receipt?",
        "but there's water on the floor",
    ],
)
def test_a_reply_that_names_nothing_new_surely_leans(question: str) -> None:
    assert leaning(question) == "surely"


@pytest.mark.parametrize(
    "question",
    [
        "Есть рассрочка?",
        "Сколько длится ремонт?",
        "а доставка бесплатная?",
        "and how much is delivery?",
        "и рассрочка есть?",
        "and is there an instalment plan?",
    ],
)
def test_a_question_with_one_topic_may_lean(question: str) -> None:
    assert leaning(question) == "perhaps"


def test_the_topic_is_added_without_words_of_the_question() -> None:
    assert (
        resolved("Где он находится?", "Как почистить сливной фильтр?") == "Где он находится? (почистить сливной фильтр)"
    )
    assert resolved("Где фильтр?", "Как почистить сливной фильтр?") == "Где фильтр? (почистить сливной)"


def test_another_code_takes_the_place_of_the_old_one() -> None:
    assert codes(resolved("а если E10?", "Стиральная машина показывает E20")) == ("E10",)


@pytest.mark.parametrize("outcome", ["blocked", "irrelevant", "nonsense", "out_of_scope", "failed"])
def test_a_turn_without_topic_is_skipped(outcome: Outcome) -> None:
    assert resolved("а сколько?", "Расскажи анекдот", outcome=outcome) == ""


def test_a_message_that_went_to_a_person_has_a_topic() -> None:
    assert "течёт" in resolved("только на отжиме", "Машина течёт спереди", outcome="high_stakes")


def test_small_talk_does_not_end_the_topic() -> None:
    before = [Exchange("Как почистить сливной фильтр?", "answered"), Exchange("Спасибо", "irrelevant")]
    assert "фильтр" in standalone("А где он?", before)


OPTIONS = ("Возврат исправного товара", "Возврат товара с недостатком")


@pytest.mark.parametrize(
    ("reply", "option"),
    [("2", 1), ("№1", 0), ("второе", 1), ("The first one", 0), ("с недостатком", 1), ("исправного", 0)],
)
def test_an_offered_choice_is_understood(reply: str, option: int) -> None:
    assert chosen_option(reply, OPTIONS) == OPTIONS[option]


@pytest.mark.parametrize("reply", ["3", "0", "возврат", "третье", "как оплатить?", "", "да"])
def test_an_ambiguous_or_absent_choice_selects_nothing(reply: str) -> None:
    assert chosen_option(reply, OPTIONS) is None


@given(texts, st.lists(st.tuples(texts, st.sampled_from(get_args(Outcome))), max_size=6))
def test_a_question_keeps_its_own_words_and_gains_few(question: str, history: list[tuple[str, Outcome]]) -> None:
    before = tuple(Exchange(earlier, outcome) for earlier, outcome in history)
    completed = standalone(question, before)
    known = {stem for one in before for stem in stems(one.question)}
    own, _, added = completed.partition(" (")
    assert set(stems(added)) <= known
    assert bool(completed) <= bool(own)


def test_an_operator_reply_is_part_of_the_topic() -> None:
    history = [Exchange("Какие есть миксеры?", "answered", reply="Возьмите модель Вихрь, гарантия на неё два года.")]
    assert "Вихрь" in standalone("А сколько она стоит?", history)
