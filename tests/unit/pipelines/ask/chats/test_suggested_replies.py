"""Suggested replies: the question they answer, and the parts that an operator may send."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pipelines.ask.chats import suggested_replies
from pipelines.ask.contract import AskRequest, TurnAnswer
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.chats.records import Chat
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TimedOut
from tests.browser.turns import EXCERPT, PASSAGE, citation, turn

ANNA = Tenant("acme", "anna")


class Rehearsing:
    """A runner that answers from a table of questions; what is not there calls for a person."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, int]] = []

    async def rehearse(self, request: AskRequest, history: Sequence[object]) -> TurnAnswer:
        self.asked.append((request.question, len(history)))
        answer = self.answers.get(request.question.rstrip("?!"), turn("human_followup", "Зову сотрудника."))
        return TurnAnswer.model_validate(answer)


def _answered(text: str, **parts: object) -> dict[str, Any]:
    cited, source = citation(1, "Коды ошибок", EXCERPT, PASSAGE, url="https://shop.example/e20")
    return turn("answered", text, citations=[cited], sources=[source], **parts)


@pytest.fixture
def chat(installation: Settings) -> Iterator[Chat]:
    Registry(installation).add("acme")
    with acting_as(Tenant("acme", "v:1")):
        yield store.start(locale="ru")


async def test_the_last_message_that_is_a_question_is_answered(chat: Chat) -> None:
    for words in ("E20", "Позовите человека!", "Ау"):
        store.post(chat.chat_id, words)
    runner: Any = Rehearsing(E20=_answered("Очистите фильтр. [1]"))
    with acting_as(ANNA):
        posted = await suggested_replies.suggest(runner, chat.chat_id)
        kept = suggested_replies.stored(posted.message)
    assert [question for question, _ in runner.asked] == ["Ау", "Позовите человека!", "E20"]
    assert kept is not None
    assert kept.reply == "Очистите фильтр.\n\nПодробнее:\nКоды ошибок: https://shop.example/e20"
    assert (posted.message.author, posted.message.kind) == ("bot", "note")
    assert [one.text for one in store.messages(chat.chat_id)] == ["E20", "Позовите человека!", "Ау"]


async def test_a_question_without_an_answer_is_suggested_the_nearest_articles(chat: Chat) -> None:
    store.post(chat.chat_id, "E20")
    near = {
        "doc_id": "d",
        "title": "Слив",
        "heading": "",
        "url": "https://shop.example/d",
        "snippet": "…",
        "score": 0.3,
    }
    runner: Any = Rehearsing(E20=turn("low_confidence", "Ближе всего:", articles=[near, near | {"url": None}]))
    with acting_as(ANNA):
        kept = suggested_replies.stored((await suggested_replies.suggest(runner, chat.chat_id)).message)
    assert kept is not None
    assert kept.reply == "Ближайшие статьи:\nСлив: https://shop.example/d"


async def test_what_could_not_be_asked_leaves_nothing_in_the_chat(chat: Chat) -> None:
    store.post(chat.chat_id, "E20")

    class Late(Rehearsing):
        async def rehearse(self, request: AskRequest, history: Sequence[object]) -> TurnAnswer:
            raise TimedOut

    runner: Any = Late()
    with acting_as(ANNA):
        with pytest.raises(TimedOut):
            await suggested_replies.suggest(runner, chat.chat_id)
        assert len(store.messages(chat.chat_id, notes=True)) == 1


async def test_what_became_of_each_suggestion_is_read_from_the_chat(chat: Chat) -> None:
    store.post(chat.chat_id, "E20")
    runner: Any = Rehearsing(E20=_answered("Очистите фильтр. [1]"))
    with acting_as(ANNA):
        made = [(await suggested_replies.suggest(runner, chat.chat_id)).message for _ in range(4)]
        kept = suggested_replies.stored(made[0])
        assert kept is not None
        store.reply(chat.chat_id, kept.reply, seen=1, suggestion=made[0].message_id)
        store.reply(chat.chat_id, "Очистите его.", seen=1, suggestion=made[1].message_id)
        store.discard_suggestion(chat.chat_id, made[2].message_id)
        known = suggested_replies.fates(store.messages(chat.chat_id, notes=True))
    assert [known.get(one.message_id, "offered") for one in made] == ["accepted", "edited", "discarded", "offered"]
