"""Messages of customers that the service has no room for."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import httpx
import pytest

from components.language.texts import text
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.storage import database
from tests.attack.attacking import PATIENCE_SECONDS, VICTIM, add_site, visitor_of
from tests.service.serving import Server, environment, serving

CHATS = 8
ALLOWED = 3


@pytest.fixture
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with a low limit of questions a minute."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("crowded"), rate_limit_per_minute=ALLOWED)
    Registry(settings).add(VICTIM, locale="ru")
    add_site(settings, VICTIM, "site_crowded")
    with serving(environment(settings)) as server:
        yield server
    database.close_all()


def replies(visitor: httpx.Client, chat: str) -> list[str]:
    """Wait for an answer, or for the word that it will come later, and return their texts."""
    deadline = monotonic() + PATIENCE_SECONDS / 4
    while monotonic() < deadline:
        messages = visitor.get(chat).json()["messages"]
        if texts := [one["text"] for one in messages if one["author"] in ("bot", "system")]:
            return texts
    return []


def test_every_message_that_is_taken_gets_a_word(crowded: Server) -> None:
    with visitor_of(crowded, "site_crowded") as visitor:
        chats = [f"/chats/{visitor.post('/chats', json={}).json()['chat_id']}" for _ in range(CHATS)]
        for number, chat in enumerate(chats):
            body = {"text": f"Как вернуть товар {number}?", "client_id": f"m-{number}"}
            assert visitor.post(f"{chat}/messages", json=body).status_code == 202
        with ThreadPoolExecutor(CHATS) as pool:
            answers = list(pool.map(lambda chat: replies(visitor, chat), chats))
    assert all(len(one) == 1 for one in answers)
    later = text("chats.delayed", "ru", seconds=0).split(".")[0]
    assert sum(one.startswith(later) for (one,) in answers) == CHATS - ALLOWED
