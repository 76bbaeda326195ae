"""Words of an erased person outside of their chats."""

from pathlib import Path

from pipelines.ask.articles import from_chat
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core.context import Tenant, acting_as
from tenants.desk import articles
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tests.attack.attacking import VICTIM
from tests.service.serving import in_force


def written_from_a_chat(words: str) -> str:
    """Return an article that an operator has written from a new chat of the customer."""
    with acting_as(Tenant(VICTIM, "customer")):
        chat_id = store.start().chat_id
        store.post(chat_id, words)
    return from_chat.write(chat_id).article_id


def test_drafts_from_chats_of_who_is_erased_go(tmp_path: Path) -> None:
    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant(VICTIM, "anna")):
        Registry().add(VICTIM)
        written_from_a_chat("Я Иван Канареечкин, улица Лесная, 3, где мой заказ?")
        published = written_from_a_chat("Где заказ?")
        articles.mark_published(published, 1)
        persons.erase(Person(subject="customer"))
        left = articles.page()
        assert [one.article_id for one in left] == [published]
        assert articles.get(published).chat_id is None
