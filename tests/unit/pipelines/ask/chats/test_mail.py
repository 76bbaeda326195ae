"""Replies to customers by e-mail, and their answers back into the chat."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from pipelines import mailer
from pipelines.ask.chats.delivery import WebhookDelivery
from pipelines.ask.chats.mailbox import Mailbox
from pipelines.mailer import Mail
from settings import Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import mail, mail_changes, outbox, store, webhooks
from tenants.chats.records import BotReply, Chat, HandoffRequest, Message
from tenants.core.context import SCOPES, Tenant, acting_as
from tests.mail_servers import MailFolder, MailServer, holding_mail, receiving_mail

CUSTOMER = "anna@example.ru"
OPERATOR = Tenant("acme", "boris", SCOPES)
LATER = timedelta(minutes=6)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with receiving_mail() as running:
        for name, value in {"HOST": "127.0.0.1", "PORT": running.port, "TLS": "none", "FROM": "help@shop.ru"}.items():
            monkeypatch.setenv(f"OPORA_SMTP_{name}", str(value))
        get_settings.cache_clear()
        yield running


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailFolder]:
    with holding_mail() as running:
        for name, value in {"HOST": "127.0.0.1", "PORT": running.port, "TLS": "none", "USER": "help"}.items():
            monkeypatch.setenv(f"OPORA_IMAP_{name}", str(value))
        get_settings.cache_clear()
        yield running


@pytest.fixture
def chat(folder: MailFolder, server: MailServer, installation: Settings) -> Iterator[Chat]:
    """A chat whose customer waits for a person and has left an address."""
    Registry().add("acme", name="Волна")
    with acting_as(Tenant("acme", "v:1")):
        started = store.start(channel="widget")
        store.post(started.chat_id, "Где мой заказ?")
        store.hand_over(started.chat_id, HandoffRequest("user_request"))
        yield store.leave_contact(started.chat_id, CUSTOMER, "Ответ придёт на почту.")


def reply(chat: Chat, text: str = "Заказ уже в пути.") -> None:
    with acting_as(OPERATOR):
        store.reply(chat.chat_id, text, seen=chat.last_seq, name="Борис")


def deliver(after: timedelta = LATER) -> None:
    for delivery in outbox.claim(10, datetime.now(UTC) + after):
        WebhookDelivery().deliver(delivery)


def test_emails_beyond_those_of_an_hour_go_later(
    chat: Chat, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPORA_EMAILS_PER_HOUR", "1")
    get_settings.cache_clear()
    sent(chat, server)
    reply(chat, "Курьер позвонит за час.")
    deliver()
    assert len(server.received) == 1
    monkeypatch.setenv("OPORA_EMAILS_PER_HOUR", "2")
    get_settings.cache_clear()
    deliver(timedelta(minutes=40))
    assert len(server.received) == 2


@pytest.mark.parametrize("name", ["Acme Bank <security@acme.example>, " + "x" * 65, 'Security: "Acme", (all) \\ [x]'])
def test_a_sender_name_is_never_another_address(chat: Chat, server: MailServer, name: str) -> None:
    with acting_as(OPERATOR):
        policy.change(email_from_name=name)
    [sender] = message_from_bytes(sent(chat, server).as_bytes(), policy=SMTP)["From"].addresses
    assert sender.addr_spec == "help@shop.ru"


@pytest.mark.parametrize("field", ["sender", "subject"])
def test_an_encoded_word_adds_no_header(field: str, server: MailServer, installation: Settings) -> None:
    names = {"sender": "Shop", "subject": "Reply", field: "=?utf-8?q?S=0d=0aReply-To=3ae=40v.io=0d=0aX=3a?="}
    mailer.send(Mail(CUSTOMER, names["sender"], names["subject"], "Text", "<p>Text</p>"))
    assert "Reply-To" not in server.received[-1]


def notes(chat: Chat) -> list[object]:
    found = store.messages(chat.chat_id, notes=True)
    return [one.body["event"] for one in found if one.kind == "note"]


def sent(chat: Chat, server: MailServer) -> EmailMessage:
    reply(chat)
    deliver()
    return server.received[-1]


def answer(to: EmailMessage, text: str, **headers: str) -> bytes:
    message = EmailMessage()
    given = {"From": f"Anna <{CUSTOMER}>", "In-Reply-To": str(to["Message-ID"]), "Message-ID": f"<{len(text)}@mail>"}
    for name, value in {**given, **{name.replace("_", "-"): value for name, value in headers.items()}}.items():
        message[name] = value
    message.set_content(text)
    return message.as_bytes()


def by_mail(chat: Chat) -> list[Message]:
    return [one for one in store.messages(chat.chat_id) if one.author == "customer" and "email" in one.body]


def test_an_unread_reply_is_emailed_after_a_while(chat: Chat, server: MailServer) -> None:
    reply(chat, "Заказ <уже> в пути.")
    reply(chat, "Будет завтра.")
    deliver(timedelta(minutes=4))
    assert server.received == []
    deliver()
    deliver()
    (message,) = server.received
    assert (message["To"], message["From"]) == (CUSTOMER, "Волна <help@shop.ru>")
    assert message["Subject"] == f"Ответ на обращение {chat.ticket_id}"
    plain, html = (message.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert html is not None
    assert "Борис: Заказ <уже> в пути." in plain.get_content()
    assert "Будет завтра." in plain.get_content()
    assert "> Где мой заказ?" in plain.get_content()
    assert "Заказ &lt;уже&gt; в пути." in html.get_content()
    # Whole in the bytes that are sent: a mail program does not decode references.
    assert server.raw[0].count(str(message["In-Reply-To"]).encode()) == 2
    assert notes(chat) == ["emailed"]
    assert {one.state for one in outbox.latest()} == {"delivered"}


def test_a_reply_that_was_read_is_not_emailed(chat: Chat, server: MailServer) -> None:
    reply(chat)
    store.mark_seen(chat.chat_id, store.get(chat.chat_id).last_seq, by_operator=False)
    deliver()
    assert (server.received, notes(chat)) == ([], [])


def test_a_customer_outside_of_the_chat_gets_the_reply_at_once(
    chat: Chat, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.change(email_from_name="Служба заботы")
    with acting_as(Tenant("acme", "backend")):
        asked = store.receive(
            HandoffRequest("high_risk", question="Верните деньги"),
            reply=lambda ticket: mail_reply(ticket.ticket_id),
            searchable="Верните деньги",
            contact=CUSTOMER,
        )
    reply(asked)
    deliver(timedelta(seconds=1))
    assert server.received[0]["From"] == "Служба заботы <help@shop.ru>"


def test_nothing_is_emailed_where_the_policy_or_the_contact_says_no(chat: Chat, server: MailServer) -> None:
    policy.change(email_replies=False)
    reply(chat)
    policy.change(email_replies=True)
    store.leave_contact(chat.chat_id, "+7 903 123-45-67", "Сохранено.")
    reply(chat)
    deliver()
    assert server.received == []
    assert webhooks.own() == ()


@pytest.mark.parametrize(("refusal", "state"), [("550 no such user", "dead"), ("451 try later", "pending")])
def test_a_refused_email_is_retried_or_shown_at_the_desk(
    chat: Chat, server: MailServer, refusal: str, state: str
) -> None:
    server.refusal = refusal
    reply(chat)
    deliver()
    (delivery,) = outbox.latest()
    assert (delivery.state, delivery.fault) == (state, f"smtp {refusal[:3]}")
    assert notes(chat) == (["email_failed"] if state == "dead" else [])


def test_an_answer_by_email_comes_into_its_chat_once(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    got = sent(chat, server)
    quoted = got.get_body(("plain",))
    assert quoted is not None
    above = "Вт, 24 нояб. 2026 в 10:00, Волна <help@shop.ru>:\n"
    text = f"Спасибо! А во сколько?\n\n{above}" + "".join(f"> {line}\n" for line in quoted.get_content().splitlines())
    folder.mails += [answer(got, text), answer(got, text)]
    mailbox = Mailbox()
    assert (mailbox.look(), mailbox.look(), Mailbox().look()) == (2, 0, 0)
    (message,) = by_mail(chat)
    assert (message.text, message.body["email"]) == ("Спасибо! А во сколько?", {"from": CUSTOMER, "attachments": 0})
    assert folder.seen == {1, 2}
    assert store.get(chat.chat_id).state == "human"


def test_an_answer_to_a_resolved_chat_calls_a_person(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    got = sent(chat, server)
    store.resolve(chat.chat_id)
    folder.mails.append(answer(got, "Так и не привезли."))
    Mailbox().look()
    assert store.get(chat.chat_id).state == "queued"


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Precedence": "bulk"},
        {"List_Id": "<news.example.ru>"},
        {"Return_Path": "<>"},
        {"From": "MAILER-DAEMON@example.ru"},
        {"From": "help@shop.ru"},
    ],
)
def test_automatic_emails_are_not_answers(
    chat: Chat, server: MailServer, folder: MailFolder, headers: dict[str, str]
) -> None:
    folder.mails.append(answer(sent(chat, server), "Я в отпуске.", **headers))
    assert Mailbox().look() == 1
    assert by_mail(chat) == []


def test_only_an_own_reference_opens_a_chat(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    got = sent(chat, server)
    (reference, *_) = mail.references(str(got["Message-ID"]))
    Registry().add("stranger")
    forged = [
        mail.message_id(mail.Reference("acme", chat.chat_id, "0" * 32), "1", "shop.ru"),
        mail.message_id(mail.Reference("stranger", chat.chat_id, reference.token), "1", "shop.ru"),
        mail.message_id(mail.Reference("nobody", chat.chat_id, reference.token), "1", "shop.ru"),
        "<opora.77.x.y@shop.ru>",
        "<hello@example.ru>",
    ]
    folder.mails += [answer(got, "Впустите", **{"In-Reply-To": name}) for name in forged]
    assert Mailbox().look() == 0
    assert (by_mail(chat), folder.seen) == ([], set())


@pytest.mark.parametrize("contacts", [(), ("+7 903 123-45-67",)])
def test_emails_to_an_earlier_contact_open_no_chat(
    chat: Chat, server: MailServer, folder: MailFolder, contacts: tuple[str, ...]
) -> None:
    got = sent(chat, server)
    with acting_as(Tenant("acme", "v:1")):
        for contact in (*contacts, "anna@right.example"):
            store.leave_contact(chat.chat_id, contact, "Ответ придёт на почту.")
    folder.mails.append(answer(got, "Отмените заказ"))
    Mailbox().look()
    assert by_mail(chat) == []
    again = sent(store.get(chat.chat_id), server)
    assert again["To"] == "anna@right.example"
    folder.mails.append(answer(again, "Спасибо!"))
    Mailbox().look()
    assert [message.text for message in by_mail(chat)] == ["Спасибо!"]


@pytest.mark.parametrize("contact", ["+7 903 123-45-67", f" {CUSTOMER.upper()} "])
def test_emails_stay_answerable_if_no_other_address_replaces_theirs(
    chat: Chat, server: MailServer, folder: MailFolder, contact: str
) -> None:
    got = sent(chat, server)
    store.leave_contact(chat.chat_id, contact, "Сохранено.")
    folder.mails.append(answer(got, "Отмените заказ"))
    Mailbox().look()
    assert [message.text for message in by_mail(chat)] == ["Отмените заказ"]


def report_of(returned: EmailMessage) -> bytes:
    report = EmailMessage()
    report["From"] = "MAILER-DAEMON@example.ru"
    report.set_content("Undelivered")
    report.add_attachment(returned)
    report.add_attachment(bytes(300_000), maintype="image", subtype="png")
    report.set_type("multipart/report")
    return report.as_bytes()


def test_a_returned_email_is_shown_at_the_desk(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    got = sent(chat, server)
    folder.mails.append(report_of(got))
    Mailbox().look()
    assert notes(chat) == ["emailed", "email_failed"]
    assert folder.sent_bytes < 100_000


def test_a_chat_takes_only_so_many_emails(
    chat: Chat, server: MailServer, folder: MailFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_changes, "MAILS_PER_HOUR", 2)
    got = sent(chat, server)
    folder.mails += [answer(got, "а" * number) for number in range(1, 6)]
    folder.mails += [report_of(got)] * 3
    Mailbox().look()
    assert len(by_mail(chat)) == 2
    assert notes(chat) == ["emailed"]


def test_emails_of_strangers_do_not_delay_an_answer(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    """Of 2,000 e-mails, 50 were read every 30 s, and all of them again after a restart."""
    folder.mails += [b"From: spam@example.ru\r\nSubject: Sale\r\n\r\nBuy.\r\n"] * 450
    folder.mails.append(answer(sent(chat, server), "Спасибо!"))
    assert Mailbox().look() == 1
    assert [one.text for one in by_mail(chat)] == ["Спасибо!"]


@pytest.mark.parametrize("forged", [b"<opora.aaaa>", b"=?utf-8?q?=3Copora=2Eaaaa=3E?="])
def test_forged_references_do_not_delay_an_answer(
    chat: Chat, server: MailServer, folder: MailFolder, forged: bytes
) -> None:
    folder.mails += [b"References: " + forged + b"\r\n\r\nBuy.\r\n"] * 60
    folder.mails.append(answer(sent(chat, server), "Спасибо!"))
    mailbox = Mailbox()
    assert (mailbox.look(), mailbox.has_more) == (1, False)


def test_few_references_of_an_email_are_looked_up() -> None:
    """A report of 490 kB named 5,900 chats, each a query: ten of them delayed customers' answers by 158 s."""
    chats = [mail.Reference("acme", f"{number:024x}", "0" * 32) for number in range(1_000)]
    header = " ".join(mail.message_id(one, "1", "shop.ru") for one in chats)
    assert mail.references(header) == tuple(reversed(chats[-3:]))


def test_a_look_says_whether_more_is_left(chat: Chat, server: MailServer, folder: MailFolder) -> None:
    folder.mails += [b"Content-Type: multipart/report; boundary=a\r\n\r\nBuy.\r\n"] * 60
    folder.mails.append(answer(sent(chat, server), "Спасибо!"))
    mailbox = Mailbox()
    assert (mailbox.look(), mailbox.has_more) == (0, True)
    assert (mailbox.look(), mailbox.has_more) == (1, False)


def test_an_email_that_cannot_be_stored_does_not_block_the_rest(
    chat: Chat, server: MailServer, folder: MailFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = sent(chat, server)
    folder.mails += [answer(got, "Раз"), answer(got, "Дважды")]
    receive, failures = mail_changes.receive, list[str]()

    def failing(chat_id: str, text: str, **given: object) -> bool:
        if text == "Раз":
            failures.append(text)
            raise OSError
        return receive(chat_id, text, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(mail_changes, "receive", failing)
    mailbox = Mailbox()
    for _ in range(4):
        with pytest.raises(OSError):  # noqa: PT011
            mailbox.look()
    assert mailbox.look() == 1
    assert [one.text for one in by_mail(chat)] == ["Дважды"]
    assert len(failures) == 5


def mail_reply(ticket_id: str) -> BotReply:
    return BotReply(f"Обращение {ticket_id}", {})
