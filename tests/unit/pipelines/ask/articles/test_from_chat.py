"""A chat becomes a draft article, which refers to it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.ask.articles import from_chat
from pipelines.ask.chats.customer_chats import USER_REQUEST
from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.chats.records import Body, Chat
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.desk import articles
from tenants.desk.articles import MAX_TITLE_LENGTH
from tenants.privacy import chat_people, persons
from tenants.privacy.persons import Person

ANNA = Tenant("shop", "anna", SCOPES)
ASKED = "Привезли не тот цвет, позвоните +7 916 123-45-67. Можно обменять?"


@pytest.fixture(autouse=True)
def _acting(installation: Settings) -> Iterator[None]:
    for tenant_id in ("shop", "other"):
        Registry().add(tenant_id, locale="ru")
    with acting_as(ANNA):
        yield


def chatted(*said: tuple[str, str]) -> Chat:
    """Create a chat of a customer."""
    with acting_as(Tenant("shop", "v:1")):
        chat = store.start()
    for who, text in said:
        with acting_as(Tenant("shop", "v:1") if who == "customer" else ANNA):
            if who == "customer":
                store.post(chat.chat_id, text)
            elif who == "note":
                store.note(chat.chat_id, text, name="Анна")
            else:
                store.reply(chat.chat_id, text, seen=store.get(chat.chat_id).last_seq, name="Анна")
    return store.get(chat.chat_id)


def test_the_question_and_the_replies_are_the_draft() -> None:
    chat = chatted(
        ("customer", ASKED),
        ("customer", "Ау?"),
        ("note", "Сердится"),
        ("operator", "Здравствуйте!"),
        ("customer", "Спасибо, а за какой срок это делается и кто платит за доставку обратно?"),
        ("operator", "Да, в течение 14 дней."),
    )
    article = from_chat.write(chat.chat_id)
    question = "Привезли не тот цвет, позвоните [phone]. Можно обменять?"
    assert (article.draft.title, article.draft.questions) == (question, (question,))
    assert article.draft.text == "Здравствуйте!\n\nДа, в течение 14 дней."
    assert (article.chat_id, article.published_version) == (chat.chat_id, None)
    assert from_chat.write(chat.chat_id) == article
    assert articles.of_chat(chat.chat_id) == article


def test_an_unanswered_chat_gives_a_title_and_an_empty_one_is_refused() -> None:
    article = from_chat.write(chatted(("customer", "Слово " * 200)).chat_id)
    assert article.draft.text == ""
    assert len(article.draft.title) <= MAX_TITLE_LENGTH
    with pytest.raises(Invalid, match="chat_without_question"):
        from_chat.write(chatted().chat_id)
    with acting_as(Tenant("other", "bob")), pytest.raises(NotFound, match="chat_unknown"):
        from_chat.write(str(article.chat_id))


def test_question_without_an_answer_becomes_the_title() -> None:
    chat = chatted(("customer", "Здравствуйте! Хочу подробно рассказать о том, как прошла доставка моего заказа"))
    turns = [("answered", None), ("low_confidence", None), ("human_followup", USER_REQUEST)]
    questions = ["Сколько стоит доставка?", "Есть рассрочка?", "Позовите, пожалуйста, человека к этому разговору"]
    for question, (outcome, reason) in zip(questions, turns, strict=True):
        with acting_as(Tenant("shop", "v:1")):
            store.post(chat.chat_id, question)
        body: Body = {"turn": {"outcome": outcome, "refusal_reason": reason}}
        store.answer(chat.chat_id, 0, "Ответ", turn_id="t", body=body, failed=False)
    assert from_chat.write(chat.chat_id).draft.title == "Есть рассрочка?"


def test_a_draft_outlives_its_pruned_chat_but_no_erasure() -> None:
    erased, pruned = (from_chat.write(chatted(("customer", ASKED)).chat_id) for _ in range(2))
    chat_people.erase("v:1", erased.chat_id)
    with pytest.raises(NotFound, match="article_unknown"):
        articles.get(erased.article_id)
    assert articles.get(pruned.article_id).chat_id == pruned.chat_id
    policy.change(chat_days=1)
    chat_people.prune(datetime.now(UTC) + timedelta(days=2))
    assert articles.get(pruned.article_id).chat_id is None
    assert persons.export(Person(subject="v:1"))["chats"] == []
