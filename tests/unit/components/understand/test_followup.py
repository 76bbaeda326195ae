"""Questions that lean on the conversation: which do, what is added, and what is left as it was asked."""

import json
from typing import get_args

import pytest
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.language.identifiers import codes
from components.language.words import stems
from components.turn import Exchange, Outcome, Turn
from components.understand.followup import FollowUpResolver, chosen_option, needs_history
from evaluation.datasets.fixture import DEMO
from tests.generated import texts

DIALOGUES = [json.loads(line) for line in (DEMO / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()]
RESOLVER = FollowUpResolver()


def resolved(question: str, *before: str, outcome: Outcome = "answered") -> str | None:
    result = RESOLVER.standalone(question, [Exchange(one, outcome) for one in before])
    return result.text if result else None


@pytest.mark.parametrize("question", ["а если E10?", "Где он находится?", "Бесплатно?", "And outside it?", "How much?"])
def test_fragments_need_the_history(question: str) -> None:
    assert needs_history(question)


@pytest.mark.parametrize(
    "question",
    [
        "Как отменить заказ?",
        "Что означает ошибка E20?",
        "E25",
        "Can I pay by card on delivery?",
        "А как оплатить заказ картой в магазине?",
    ],
)
def test_complete_questions_do_not_need_the_history(question: str) -> None:
    assert not needs_history(question)


def test_the_topic_is_added_without_words_of_the_question() -> None:
    assert (
        resolved("Где он находится?", "Как почистить сливной фильтр?") == "Где он находится? (почистить сливной фильтр)"
    )
    assert resolved("Где фильтр?", "Как почистить сливной фильтр?") == "Где фильтр? (почистить сливной)"


def test_another_code_takes_the_place_of_the_old_one() -> None:
    full = resolved("а если E10?", "Стиральная машина показывает E20")
    assert full is not None
    assert codes(full) == ("E10",)


@pytest.mark.parametrize("outcome", ["blocked", "irrelevant", "nonsense", "out_of_scope", "high_stakes", "failed"])
def test_a_turn_without_topic_is_skipped(outcome: Outcome) -> None:
    assert resolved("а сколько?", "Расскажи анекдот", outcome=outcome) is None


def test_small_talk_does_not_end_the_topic() -> None:
    before = [Exchange("Как почистить сливной фильтр?", "answered"), Exchange("Спасибо", "irrelevant")]
    result = RESOLVER.standalone("А где он?", before)
    assert result is not None
    assert "фильтр" in result.history_stems


def test_only_recent_questions_are_considered() -> None:
    before = [Exchange("Как почистить сливной фильтр?", "answered")] + [Exchange("Привет", "irrelevant")] * 4
    assert RESOLVER.standalone("А где он?", before) is None


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
    after = RESOLVER.run(Turn("t", question, history=before))["turn"]
    assert (after.question, after.history) == (question, before)
    assert bool(after.history_stems) <= bool(after.standalone_question)
    assert len(after.history_stems) <= RESOLVER.max_history_words
    known = {stem for one in before for stem in stems(one.question)}
    assert after.history_stems <= known
    assert set(stems(after.standalone_question)) <= known | set(stems(question)) | set(
        stems(after.standalone_question.partition(" (")[0])
    )


def test_every_demo_dialogue_keeps_its_topic() -> None:
    """All but a few of the written follow-ups lean, and each takes at least one word of the question before."""
    leaning = [resolved(one["follow_up"], *one["history"]) is not None for one in DIALOGUES]
    assert len(DIALOGUES) == 40
    assert sum(leaning) >= 0.95 * len(leaning)


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("followup", FollowUpResolver(turns=2, max_history_words=3))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.to_dict()["components"]["followup"]["init_parameters"] == {"turns": 2, "max_history_words": 3}


def test_an_operator_reply_is_part_of_the_topic() -> None:
    history = [Exchange("Какие есть миксеры?", "answered", reply="Возьмите модель Вихрь, гарантия на неё два года.")]
    standalone = RESOLVER.standalone("А сколько она стоит?", history)
    assert standalone is not None
    assert "Вихрь" in standalone.text
