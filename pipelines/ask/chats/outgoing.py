"""E-mails of the outbox: unread replies to customers, and alerts to staff, written at the moment they are sent."""

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from textwrap import indent
from typing import Any, Literal, TypeAlias

from jinja2 import Environment, Template

from components.language.texts import percent, text
from pipelines import mailer
from pipelines.mailer import Mail, MailFailed
from settings import get_settings
from tenants.accounts import policy, registry
from tenants.chats import mail, mail_changes, outbox, store
from tenants.chats.mail import Reference
from tenants.chats.outbox import Delivery
from tenants.chats.records import Chat, Message
from tenants.core.errors import NotFound

log = logging.getLogger("opora.mail")

Block: TypeAlias = tuple[Literal["text", "quote", "small"], str]

_TEMPLATE = Path(__file__).with_name("mail.html")
_LONGEST_QUOTE = 1_000
_HOUR, _PAUSE = timedelta(hours=1), timedelta(minutes=30)


def deliver(delivery: Delivery) -> None:
    """Make one attempt to send an e-mail of the tenant in context, and note how it ended.

    It is sent later if the tenant has used up the e-mails of an hour.
    """
    if outbox.sent_since(datetime.now(UTC) - _HOUR) >= get_settings().emails_per_hour:
        outbox.postpone(delivery, _PAUSE)
        return
    data = json.loads(delivery.body)["data"]
    try:
        if delivery.event == "email.alert":
            mailer.send(_alert(data))
        else:
            _send_reply(data["chat_id"], delivery)
            return
    except NotFound:
        log.info("a chat is gone before its e-mail was sent")
    except MailFailed as failed:
        log.warning("e-mail %s: %s", delivery.delivery_id, failed.fault)
        if outbox.settle(delivery, fault=failed.fault, final=failed.final) == "dead" and "chat_id" in data:
            mail_changes.note_undelivered(data["chat_id"], failed.fault)
        return
    outbox.settle(delivery)


def _send_reply(chat_id: str, delivery: Delivery) -> None:
    """Send what the customer has not read; nothing if they have, or if the tenant has switched e-mail off."""
    chat = store.get(chat_id)
    address = mail.address_in(chat.contact)
    unread = [one for one in store.messages(chat.chat_id, after=_read_through(chat)) if _is_reply(one)]
    if not (unread and address and chat.mail_token and mail.is_on()):
        outbox.settle(delivery, sent=False)
        return
    mailer.send(_reply(chat, address, unread, delivery))
    mail_changes.note_sent(chat.chat_id, unread[-1].seq)
    outbox.settle(delivery)


def _reply(chat: Chat, address: str, unread: Sequence[Message], delivery: Delivery) -> Mail:
    ticket, locale = chat.ticket_id, chat.locale
    subject = text("mail.reply.subject", locale, ticket=ticket) if ticket else text("mail.reply.subject_plain", locale)
    token = chat.mail_token or ""
    reference = Reference(delivery.tenant_id, chat.chat_id, token)
    begins = mail.message_id(reference, "0", mailer.domain())
    headers = {
        "Message-ID": mail.message_id(reference, delivery.delivery_id, mailer.domain()),
        # The first one was never sent: by it, mail programs show all e-mails of a chat as one conversation.
        "References": begins,
        "In-Reply-To": begins,
        "X-Auto-Response-Suppress": "All",
    }
    sender = policy.current().email_from_name or registry.current().name
    return _mail(address, sender, subject, _reply_blocks(chat, unread), locale, headers)


def _reply_blocks(chat: Chat, unread: Sequence[Message]) -> list[Block]:
    locale, answerable = chat.locale, bool(get_settings().imap_host)
    before = [one for one in store.recent(chat.chat_id) if one.author == "customer" and one.seq < unread[0].seq]
    blocks: list[Block] = [("small", text("mail.above", locale))] if answerable else []
    blocks += [("text", text(f"mail.reply.{name}", locale)) for name in ("greeting", "intro")]
    blocks += [("text", f"{one.name}: {one.text}" if one.name else one.text) for one in unread]
    if before and before[-1].text:
        blocks.append(("small", text("mail.reply.asked", locale)))
        blocks.append(("quote", before[-1].text[:_LONGEST_QUOTE]))
    blocks.append(("small", text("mail.reply.answer" if answerable else "mail.reply.answer_elsewhere", locale)))
    return blocks


def _alert(data: dict[str, Any]) -> Mail:
    name, locale = registry.current().name, policy.current().locale
    url = f"{get_settings().browsed_at}/desk/evaluation"
    blocks: list[Block] = [("text", text("mail.alert.intro", locale))]
    for share, loss in data["loss"].items():
        figures = {key: percent(loss[key], locale=locale) for key in ("before", "now", "chance")}
        counts = {key: loss[key] for key in ("worse", "better", "n")}
        what = text(f"desk.insight.evaluation.loss_of.{share}", locale, before=figures["before"], now=figures["now"])
        chance = text("desk.insight.evaluation.loss_chance", locale, chance=figures["chance"], **counts)
        blocks.append(("text", f"{what} {chance}"))
    blocks.append(("text", text("mail.alert.link", locale, url=url)))
    blocks.append(("small", text("mail.alert.footer", locale, name=name)))
    headers = {"Auto-Submitted": "auto-generated"}
    subject = text("mail.alert.subject", locale, name=mailer.display_name(name))
    return _mail(data["to"], name, subject, blocks, locale, headers)


def _mail(to: str, sender: str, subject: str, blocks: Sequence[Block], locale: str, headers: dict[str, str]) -> Mail:
    plain = (indent(words, "> ", lambda _: True) if kind == "quote" else words for kind, words in blocks)
    html = _template().render(blocks=blocks, locale=locale)
    return Mail(to, sender, subject, "\n\n".join(plain) + "\n", html, headers)


def _read_through(chat: Chat) -> int:
    """Return the number of the last message that the customer has read, here or by e-mail."""
    return max(chat.customer_seen, chat.mailed_seq)


def _is_reply(message: Message) -> bool:
    return message.author == "operator" and message.kind == "text" and bool(message.text)


@lru_cache(maxsize=1)
def _template() -> Template:
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        _TEMPLATE.read_text(encoding="utf-8")
    )
