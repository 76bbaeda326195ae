"""An operator's view of a chat: the words of the customer and the articles that they saw."""

from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest

from settings import Settings
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tests import desk
from tests.desk import Browser
from tests.service.serving import Server, in_force
from tests.webhooks import wait_until

ASKED = "Что делать, если покупка не подошла по размеру и чек потерян?"


@pytest.fixture
def customer(installation: Settings, anybody: httpx.Client, acme: httpx.Client) -> httpx.Client:
    with in_force(installation), acting_as(Tenant("acme", "admin")):
        site = sites.add("Входящие", [])
    opened = anybody.post("/widget/sessions", json={"site": site.key}, headers={"Origin": str(anybody.base_url)})
    return httpx.Client(
        base_url=anybody.base_url, timeout=60, headers={"Authorization": f"Bearer {opened.json()['token']}"}
    )


def written(client: httpx.Client, chat_id: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = client.get(f"/chats/{chat_id}").json()["messages"]
    return messages


def test_an_operator_reads_the_customers_words_and_the_articles_they_saw(
    server: Server, customer: httpx.Client
) -> None:
    chat_id = customer.post("/chats", json={"locale": "ru"}).json()["chat_id"]
    customer.post(f"/chats/{chat_id}/messages", json={"text": ASKED, "client_id": uuid4().hex})

    messages = partial(written, customer, chat_id)
    wait_until(lambda: any(one["author"] == "bot" for one in messages()))
    ticket = customer.post(f"/chats/{chat_id}/person").json()["ticket_id"]
    (reply,) = [one for one in messages() if one["author"] == "bot"]
    seen = [article["title"] for article in reply["body"]["turn"]["articles"]]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        operator = Browser(client, desk.secret_of(desk.staff("acme", {"Олег": "operator"})["Олег"]))
        (row,) = [one for one in operator.page("/desk").cssselect("a") if chat_id in one.get("href")]
        cards = operator.page(f"/desk/chat/{chat_id}").cssselect(".cards li strong")
    assert ASKED in row.text_content()
    assert seen
    assert [one.text_content() for one in cards] == seen
    assert sum(ticket in one["text"] for one in messages()) == 1
