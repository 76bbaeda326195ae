"""A conversation: the assistant answers while it has the chat, a person takes over, and gives it back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Event

import pytest

from components.turn import Article, Passage, Reply, Turn
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.audit.search import TurnQuery
from tenants.chats import conversation_memory, store, text_quota
from tenants.chats.records import Chat
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Conflict, Forbidden, NotFound, RateLimited
from tenants.knowledge import gaps
from tests.chats import all_tickets
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered

VISITOR = Tenant("acme", "v:1", frozenset({"visit"}))
ANNA = Tenant("acme", "anna", frozenset({"operate"}))
SECONDS = 20.0


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(VISITOR):
        Registry().add("acme")
        yield


@asynccontextmanager
async def talking(finish: Callable[[Turn], Turn], budget: float = SECONDS) -> AsyncIterator[Conversations]:
    """Run chats with answers of this engine."""
    runner = Runner(Ask(FakeEngine(finish)), 2, budget)
    made = Conversations(runner)
    try:
        yield made
        await made.idle()
    finally:
        await asyncio.to_thread(runner.close)


def refused(turn: Turn) -> Turn:
    return replace(turn, outcome="refused", reason="no_relevant_context", reply=Reply(text="Не нашлось."))


def with_article(turn: Turn) -> Turn:
    found = Passage("c", "d", "Возврат", "", "Вернуть товар можно.", ())
    return replace(
        refused(turn), reply=Reply(text="Не нашлось.", articles=(Article(found, "Вернуть товар можно.", 0.1),))
    )


def handed_over(turn: Turn) -> Turn:
    return replace(turn, outcome="high_stakes", reason="user_request", reply=Reply(text="Передаю."))


def lines(chat: Chat) -> list[str]:
    """Return the thread as a reader sees it."""
    return [
        f"{one.author}: {one.text}" if one.kind == "text" else f"({one.body['event']})"
        for one in store.messages(chat.chat_id)
    ]


async def test_a_message_is_answered_once_however_often_it_is_sent() -> None:
    chat = store.start()
    async with talking(answered) as chats:
        for _ in range(2):
            await chats.post(chat.chat_id, "Где мой заказ?", client_id="c1")
        await chats.idle()
        await chats.post(chat.chat_id, "Где мой заказ?", client_id="c1")
    assert lines(chat) == ["customer: Где мой заказ?", "bot: Ответ."]
    (_, answer) = store.messages(chat.chat_id)
    turn = answer.body["turn"]
    assert isinstance(turn, dict)
    assert (turn["outcome"], turn["turn_id"], turn["session_id"]) == ("answered", answer.turn_id, chat.chat_id)
    assert conversation_memory.recall(chat.chat_id) == ()


async def test_an_outcome_for_a_person_opens_one_ticket_and_names_it() -> None:
    policy.change(hours={"zone": "UTC", "week": {}})
    chat = store.start()
    async with talking(handed_over) as chats:
        await chats.post(chat.chat_id, "Позовите человека")
    (ticket,) = all_tickets()
    assert (ticket.session_id, ticket.subject) == (chat.chat_id, VISITOR.subject)
    _, notice, event = store.messages(chat.chat_id)
    assert ticket.ticket_id in notice.text
    assert notice.text.endswith("Сейчас сотрудников на связи нет.")
    assert event.text == ""
    assert (event.body["event"], event.body["ticket_id"]) == ("queued", ticket.ticket_id)
    turn = notice.body["turn"]
    assert isinstance(turn, dict)
    assert turn["handoff"]["ticket_id"] == ticket.ticket_id
    assert turn["handoff"]["staffing"]["open"] is False
    assert store.get(chat.chat_id).state == "queued"


class Limited(RateLimiter):
    """Refuses the first calls, with these seconds to wait."""

    def __init__(self, *seconds: int) -> None:
        self.seconds = list(seconds)

    async def admit(self) -> None:
        """As `RateLimiter.admit`."""
        if self.seconds:
            raise RateLimited(self.seconds.pop(0))


async def test_rate_limited_question_is_answered_later() -> None:
    chat = store.start()
    async with talking(answered) as chats:
        chats.runner.limiter = Limited(1, 1)
        await chats.post(chat.chat_id, "Где мой заказ?")
    assert lines(chat) == ["customer: Где мой заказ?", "(delayed)", "bot: Ответ."]
    assert store.messages(chat.chat_id)[1].text == "Слишком много вопросов подряд. Ответ придёт через 1 с."


async def test_question_limited_for_long_goes_to_a_person() -> None:
    chat = store.start()
    async with talking(answered) as chats:
        chats.runner.limiter = Limited(3_600)
        await chats.post(chat.chat_id, "Где мой заказ?")
    assert lines(chat) == ["customer: Где мой заказ?", "(queued)"]
    assert (store.get(chat.chat_id).state, store.get(chat.chat_id).reason) == ("queued", "rate_limited")


async def test_two_questions_without_an_answer_call_a_person() -> None:
    chat = store.start()
    async with talking(refused) as chats:
        await chats.post(chat.chat_id, "Первый вопрос?")
        await chats.idle()
        assert store.get(chat.chat_id).state == "bot"
        await chats.post(chat.chat_id, "Второй вопрос?")
    handed = store.get(chat.chat_id)
    (ticket,) = all_tickets()
    assert (handed.state, handed.reason, handed.ticket_id) == ("queued", "repeated_failures", ticket.ticket_id)
    assert [line.partition(":")[0] for line in lines(chat)] == ["customer", "bot", "customer", "bot", "(queued)"]


async def test_nothing_of_the_assistant_appears_once_a_person_has_the_chat() -> None:
    chat, begun, taken = store.start(), Event(), Event()

    def slowly(turn: Turn) -> Turn:
        begun.set()
        assert taken.wait(SECONDS)
        return refused(turn)

    async with talking(slowly) as chats:
        await chats.post(chat.chat_id, "Где мой заказ?")
        assert await asyncio.to_thread(begun.wait, SECONDS)
        with acting_as(ANNA):
            store.reply(chat.chat_id, "Здравствуйте!", seen=1, name="Анна")
        taken.set()
        await chats.idle()
        chats.runner.ask.recorder.close()
    assert lines(chat) == ["customer: Где мой заказ?", "(joined)", "operator: Здравствуйте!"]
    assert len(list(search.find(TurnQuery(), limit=10))) == 1
    assert gaps.all(None) == ()


async def test_the_assistant_knows_what_the_operator_said_after_hand_back() -> None:
    seen: list[Turn] = []

    def record(turn: Turn) -> Turn:
        seen.append(turn)
        return answered(turn)

    chat = store.start()
    async with talking(record) as chats:
        await chats.ask_for_person(chat.chat_id)
        await chats.post(chat.chat_id, "Какая гарантия на миксер?")
        with acting_as(ANNA):
            for said in ("На миксер два года.", "Чек сохраните."):
                store.reply(chat.chat_id, said, seen=100, name="Анна")
            store.hand_back(chat.chat_id)
        await chats.post(chat.chat_id, "А на чайник?")
    (turn,) = seen
    (exchange,) = turn.history
    assert exchange.question == "Какая гарантия на миксер?"
    assert exchange.reply == "На миксер два года.\nЧек сохраните."
    assert lines(chat)[-2:] == ["customer: А на чайник?", "bot: Ответ."]


async def test_an_unanswered_message_is_answered_after_a_restart() -> None:
    chat = store.start()
    store.post(chat.chat_id, "Где мой заказ?")
    async with talking(answered) as chats:
        chats.resume(chat.chat_id)
        await chats.idle()
        chats.resume(chat.chat_id)
    assert lines(chat) == ["customer: Где мой заказ?", "bot: Ответ."]


async def test_an_answer_that_is_stopped_does_not_come_later() -> None:
    chat, begun, stopped = store.start(), Event(), Event()

    def slowly(turn: Turn) -> Turn:
        begun.set()
        assert stopped.wait(SECONDS)
        return answered(turn)

    async with talking(slowly) as chats:
        await chats.post(chat.chat_id, "Где мой заказ?")
        assert await asyncio.to_thread(begun.wait, SECONDS)
        await chats.stop(chat.chat_id)
        stopped.set()
        await chats.idle()
        await chats.stop(chat.chat_id)
        chats.resume(chat.chat_id)
    assert lines(chat) == ["customer: Где мой заказ?", "(stopped)"]


async def test_an_answer_is_written_anew_and_a_question_put_in_other_words() -> None:
    replies = iter(["Первый.", "Второй.", "Третий."])
    histories: list[int] = []
    repeated = Event()

    def next_reply(turn: Turn) -> Turn:
        histories.append(len(turn.history))
        # The edit is sent again while its answer is being written, which must not stop it.
        assert len(histories) < 3 or repeated.wait(SECONDS)
        return replace(turn, outcome="answered", reply=Reply(text=next(replies)))

    chat = store.start()
    async with talking(next_reply) as chats:
        asked = await chats.post(chat.chat_id, "Где заказ?")
        await chats.idle()
        first = store.messages(chat.chat_id)[-1]
        await chats.regenerate(chat.chat_id, first.turn_id)
        await chats.idle()
        with pytest.raises(Conflict):
            await chats.regenerate(chat.chat_id, first.turn_id)
        for _ in range(2):
            edited = await chats.edit(chat.chat_id, asked.message.message_id, "Где мой заказ 1042?", "e1")
        repeated.set()
        await chats.idle()
        with pytest.raises(Conflict):
            await chats.edit(chat.chat_id, asked.message.message_id, "Ещё раз", "e2")
    assert lines(chat) == [
        "customer: Где заказ?",
        "bot: Первый.",
        "(asked_again)",
        "bot: Второй.",
        "customer: Где мой заказ 1042?",
        "bot: Третий.",
    ]
    assert edited.message.body == {"replaces": asked.message.message_id}
    assert histories == [0, 0, 0]


async def test_questions_that_lead_to_articles_call_nobody() -> None:
    chat = store.start()
    async with talking(with_article) as chats:
        for question in ("Первый вопрос?", "Второй вопрос?", "Третий вопрос?"):
            await chats.post(chat.chat_id, question)
            await chats.idle()
    assert store.get(chat.chat_id).state == "bot"


async def test_an_answer_out_of_time_is_stored_as_a_failure() -> None:
    chat, release = store.start(), Event()

    def stall(turn: Turn) -> Turn:
        assert release.wait(SECONDS)
        return answered(turn)

    async with talking(stall, budget=0.2) as chats:
        await chats.post(chat.chat_id, "Где мой заказ?")
        await chats.idle()
        release.set()
    message = store.messages(chat.chat_id)[-1]
    turn = message.body["turn"]
    assert isinstance(turn, dict)
    assert (turn["outcome"], turn["refusal_reason"]) == ("failed", "timeout")
    assert store.get(chat.chat_id).failures == 1


async def test_a_person_is_asked_for_in_the_middle_of_an_answer() -> None:
    chat, begun, asked = store.start(), Event(), Event()

    def slowly(turn: Turn) -> Turn:
        begun.set()
        assert asked.wait(SECONDS)
        return answered(turn)

    async with talking(slowly) as chats:
        await chats.post(chat.chat_id, "Где мой заказ?")
        assert await asyncio.to_thread(begun.wait, SECONDS)
        waiting = await chats.ask_for_person(chat.chat_id)
        asked.set()
    (ticket,) = all_tickets()
    assert (waiting.state, waiting.ticket_id, ticket.question) == ("queued", ticket.ticket_id, "Где мой заказ?")
    assert lines(chat) == ["customer: Где мой заказ?", "(queued)"]


async def test_an_edit_without_room_leaves_the_answer_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, begun = Event(), Event()

    def next_reply(turn: Turn) -> Turn:
        begun.set()
        assert refused.wait(SECONDS)
        return answered(turn)

    def is_full(*_: object) -> None:
        raise RateLimited(60, "chats_full")

    chat = store.start()
    async with talking(next_reply) as chats:
        asked = await chats.post(chat.chat_id, "Где заказ?")
        assert await asyncio.to_thread(begun.wait, SECONDS)
        with monkeypatch.context() as full:
            full.setattr(text_quota, "check", is_full)
            with pytest.raises(RateLimited):
                await chats.edit(chat.chat_id, asked.message.message_id, "Где мой заказ?")
        refused.set()
        await chats.idle()
    assert lines(chat) == ["customer: Где заказ?", "bot: Ответ."]


async def test_editing_or_repeating_an_earlier_turn_supersedes_later_ones() -> None:
    chat, histories = store.start(), list[list[str]]()

    def listen(turn: Turn) -> Turn:
        histories.append([one.question for one in turn.history])
        return answered(turn)

    async with talking(listen) as chats:
        posted = []
        for words in ("Первый", "Второй", "Третий"):
            posted.append(await chats.post(chat.chat_id, words))
            await chats.idle()
        answers = [one for one in store.messages(chat.chat_id) if one.author == "bot"]
        await chats.regenerate(chat.chat_id, answers[1].turn_id)
        await chats.idle()
        with pytest.raises(Conflict):
            await chats.edit(chat.chat_id, posted[2].message.message_id, "Поздно")
        await chats.edit(chat.chat_id, posted[0].message.message_id, "Заново")
        await chats.idle()
        await chats.post(chat.chat_id, "Дальше")
    assert histories == [[], ["Первый"], ["Первый", "Второй"], ["Первый"], [], ["Заново"]]


async def test_what_a_person_has_answered_cannot_be_edited() -> None:
    chat = store.start()
    async with talking(answered) as chats:
        asked = await chats.post(chat.chat_id, "Где мой заказ?")
        await chats.idle()
        with acting_as(ANNA):
            store.reply(chat.chat_id, "В пути.", seen=2)
            store.hand_back(chat.chat_id)
        with pytest.raises(Conflict):
            await chats.edit(chat.chat_id, asked.message.message_id, "Где посылка?")


async def test_a_branch_keeps_the_chat_up_to_an_answer_and_goes_on_alone() -> None:
    policy.change(chat_tools="everyone")
    chat, histories = store.start(), list[list[str]]()

    def listen(turn: Turn) -> Turn:
        histories.append([one.question for one in turn.history])
        return answered(turn)

    async with talking(listen) as chats:
        for words in ("Первый", "Второй"):
            await chats.post(chat.chat_id, words)
            await chats.idle()
        _, first, second, _ = store.messages(chat.chat_id)
        with pytest.raises(NotFound):
            await chats.branch(chat.chat_id, second.message_id)
        branch = await chats.branch(chat.chat_id, first.message_id)
        assert lines(branch) == ["customer: Первый", "bot: Ответ.", "(branched_from)"]
        await chats.post(branch.chat_id, "Другой")
    assert histories == [[], ["Первый"], ["Первый"]]
    assert lines(branch)[3:] == ["customer: Другой", "bot: Ответ."]
    assert lines(chat)[2:] == ["customer: Второй", "bot: Ответ.", "(branched_to)"]


@pytest.mark.parametrize(("rule", "subject"), [("nobody", "u:1"), ("identified", "v:1")])
async def test_the_policy_says_who_may_branch(rule: str, subject: str) -> None:
    policy.change(chat_tools=rule)
    with acting_as(Tenant("acme", subject)):
        chat = store.start()
        async with talking(answered) as chats:
            await chats.post(chat.chat_id, "Вопрос")
            await chats.idle()
            with pytest.raises(Forbidden):
                await chats.branch(chat.chat_id, store.messages(chat.chat_id)[-1].message_id)
