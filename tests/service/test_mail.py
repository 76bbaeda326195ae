"""A customer who has closed the chat: a reply reaches them by e-mail, and their answer comes back into the chat."""

from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import httpx
import pytest

from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tests import desk
from tests.desk import Browser
from tests.mail_servers import MailFolder, MailServer, holding_mail, receiving_mail
from tests.service.serving import ARTICLES, Server, environment, in_force, serving
from tests.service.test_chats import begun, visitor
from tests.webhooks import wait_until

TENANT, CUSTOMER = "posted", "ivan@example.ru"


@pytest.fixture(scope="module")
def smtp() -> Iterator[MailServer]:
    with receiving_mail() as server:
        yield server


@pytest.fixture(scope="module")
def mailbox() -> Iterator[MailFolder]:
    with holding_mail() as folder:
        yield folder


@pytest.fixture(scope="module")
def posted(
    tmp_path_factory: pytest.TempPathFactory, smtp: MailServer, mailbox: MailFolder
) -> Iterator[tuple[Server, Settings]]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("posted"),
        rate_limit_per_minute=0,
        smtp_host="127.0.0.1",
        smtp_port=smtp.port,
        smtp_tls="none",
        smtp_from="help@shop.example",
        imap_host="127.0.0.1",
        imap_port=mailbox.port,
        imap_tls="none",
        imap_user="help",
        imap_seconds=5,
    )
    with in_force(settings):
        Registry().add(TENANT, locale="ru")
        with acting_as(Tenant(TENANT, "admin")):
            policy.change(email_after_minutes=0)
    with serving(environment(settings)) as server:
        yield server, settings


@pytest.fixture(autouse=True)
def _in_force(posted: tuple[Server, Settings], smtp: MailServer) -> Iterator[None]:
    """Apply the settings of this service, not those of the folder, with no mail received yet."""
    smtp.refusal = ""
    smtp.received.clear()
    with in_force(posted[1]):
        yield


def test_a_reply_and_its_answer_go_by_e_mail(
    posted: tuple[Server, Settings], smtp: MailServer, mailbox: MailFolder
) -> None:
    server, settings = posted
    with acting_as(Tenant(TENANT, "admin")):
        site = sites.add("Магазин", ["https://shop.example"])
    staff = {"Authorization": f"Bearer {issue(settings, TENANT, scopes=('operate',), subject='olga', ttl_seconds=600)}"}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        customer = visitor(client, site)
        chat_id = begun(customer)
        customer.send("POST", f"/chats/{chat_id}/person").raise_for_status()
        customer.send("POST", f"/chats/{chat_id}/contact", contact=CUSTOMER).raise_for_status()
        path = f"/desk/chats/{chat_id}"

        def chat() -> dict[str, Any]:
            shown: dict[str, Any] = client.get(path, headers=staff).raise_for_status().json()
            return shown

        body = {"text": "Мастер приедет завтра.", "name": "Ольга", "seen": chat()["messages"][-1]["seq"]}
        client.post(f"{path}/reply", json=body, headers=staff).raise_for_status()
        wait_until(lambda: bool(smtp.received))
        (sent,) = smtp.received
        text = sent.get_body(("plain",))
        assert text is not None
        assert (sent["To"], "Ольга: Мастер приедет завтра." in text.get_content()) == (CUSTOMER, True)

        answer = EmailMessage()
        answer["From"], answer["To"], answer["Subject"] = CUSTOMER, "help@shop.example", f"Re: {sent['Subject']}"
        answer["Message-ID"], answer["In-Reply-To"] = "<answer-1@example.ru>", sent["Message-ID"]
        answer.set_content("Спасибо, жду.\n\nМагазин <help@shop.example> пишет:\n> Мастер приедет завтра.\n")
        mailbox.mails.append(answer.as_bytes())
        wait_until(lambda: chat()["messages"][-1]["author"] == "customer")
        assert chat()["messages"][-1]["text"] == "Спасибо, жду."


def test_desk_and_deliveries_say_why_an_email_was_refused(posted: tuple[Server, Settings], smtp: MailServer) -> None:
    server, _ = posted
    smtp.refusal = "550 no such user"
    with acting_as(Tenant(TENANT, "admin")):
        site = sites.add("Магазин", ["https://shop.example"])
    with httpx.Client(base_url=server.url, timeout=60) as client:
        customer = visitor(client, site)
        chat_id = begun(customer)
        customer.send("POST", f"/chats/{chat_id}/person").raise_for_status()
        customer.send("POST", f"/chats/{chat_id}/contact", contact=CUSTOMER).raise_for_status()
        operator = Browser(client, desk.secret_of(desk.staff(TENANT, {"Ольга": "operator"})["Ольга"]))
        path = f"/desk/chat/{chat_id}"
        operator.post(f"{path}/reply", {"text": "Мастер приедет завтра.", "seen": "9"})
        wait_until(lambda: "Письмо клиенту не доставлено" in operator.get(path).text)
        assert "не доставлено: почтовый сервер отказал (код 550)." in operator.get(path).text
        admin = Browser(client, desk.secret_of(desk.staff(TENANT, {"Анна": "admin"})["Анна"]))
        deliveries = admin.page("/desk/settings/webhooks").get_element_by_id("deliveries").text_content()
        assert "почтовый сервер отказал (код 550)" in deliveries
        assert "smtp" not in deliveries


def test_a_drop_of_the_evaluation_goes_by_email(posted: tuple[Server, Settings], smtp: MailServer) -> None:
    server, settings = posted
    with acting_as(Tenant(TENANT, "admin")):
        policy.change(alert_email="boss@shop.example")
    scopes = ("ingest", "operate", "admin")
    headers = {"Authorization": f"Bearer {issue(settings, TENANT, scopes=scopes, subject='olga', ttl_seconds=600)}"}
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        client.post("/ingest/run", json={"documents": ARTICLES}).raise_for_status()
        wordings = ("Что значит код E20?", "Что означает E20?", "ошибка E20 что делать", "Машина показывает ошибку E20")
        asked = [{"question": one, "facts": ["не сливается"]} for one in wordings]
        asked += [{"question": one.replace("E20", "E10"), "facts": ["не поступает"]} for one in wordings]
        client.post("/evaluation/questions", json={"questions": asked}).raise_for_status()

        def run(number: int) -> None:
            client.post("/evaluation/results").raise_for_status()
            wait_until(lambda: _states(client) == ["done"] * number)

        run(1)
        client.delete("/documents/errors.md").raise_for_status()
        run(2)
        wait_until(lambda: bool(smtp.received))
    (alert,) = smtp.received
    assert (alert["To"], "снизилось" in alert["Subject"]) == ("boss@shop.example", True)


def _states(client: httpx.Client) -> list[str]:
    return [one["state"] for one in client.get("/evaluation/results").raise_for_status().json()["results"]]
