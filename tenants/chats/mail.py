"""E-mail of a tenant: replies to customers who have left a chat, and alerts, on their way in the outbox of webhooks.

A reply carries a reference, its `Message-ID`, by which the customer's answer finds the chat. The threat: a stranger
writes into a chat. A reference holds 128 random bits of the chat, which only its e-mails contain.
"""

import re
from base64 import b32decode, b32encode
from binascii import Error as NotBase32
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from secrets import token_hex

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from settings import get_settings
from tenants.accounts import policy
from tenants.chats import outbox
from tenants.chats.outbox import MAIL
from tenants.chats.tables import ChatRow, OutboxRow, WebhookRow
from tenants.chats.webhook_events import MailEvent
from tenants.core.errors import CallerError
from tenants.core.names import check_tenant_id
from tenants.storage.tenant_session import TenantSession

_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_PHONE = re.compile(r"\+?[0-9 ()\u00a0.-]{5,30}")
_DIGITS = range(5, 16)
_REFERENCE = re.compile(r"<opora\.([a-z2-7]{2,420})\.([0-9a-f]{24})\.([0-9a-f]{32})\.[0-9a-f]{1,32}@[^<>\s]{1,255}>")

_REFERENCES_READ = 3
"""Different chats that an e-mail may refer to: its own, and those of threads that a mail program has joined to it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The chat that an e-mail belongs to, as its sender claims it; `names` proves it."""

    tenant_id: str
    chat_id: str
    token: str

    def names(self, token: str | None) -> bool:
        """Return whether a chat's own token is that of the reference."""
        return token is not None and compare_digest(self.token, token)


def address_in(contact: str | None) -> str:
    """Return a contact that is an e-mail address; empty for a phone number and for none."""
    given = (contact or "").strip()
    return given if _ADDRESS.fullmatch(given) else ""


def is_contact(given: str) -> bool:
    """Return whether a text is an e-mail address or a phone number."""
    digits = sum(map(str.isdigit, given))
    return bool(address_in(given)) or (bool(_PHONE.fullmatch(given)) and digits in _DIGITS)


def is_on() -> bool:
    """Return whether replies of the tenant in context go out by e-mail."""
    return bool(get_settings().smtp_host) and policy.current().email_replies


def message_id(reference: Reference, delivery_id: str, domain: str) -> str:
    """Return the `Message-ID` of an e-mail about a chat: lower case, because some servers change it to that."""
    tenant = b32encode(reference.tenant_id.encode()).decode().rstrip("=").lower()
    return f"<opora.{tenant}.{reference.chat_id}.{reference.token}.{delivery_id.rpartition('_')[2]}@{domain}>"


def references(header: str) -> tuple[Reference, ...]:
    """Return the latest references to chats in a header or a text, the latest first.

    Threat: an e-mail that names thousands of chats, each of which is looked up.
    """
    found: dict[Reference, None] = {}
    for tenant, chat_id, token in reversed(_REFERENCE.findall(header.lower())):
        if len(found) == _REFERENCES_READ:
            break
        try:
            tenant_id = check_tenant_id(b32decode(tenant.upper() + "=" * (-len(tenant) % 8)).decode())
        except (NotBase32, UnicodeDecodeError, CallerError):
            continue
        found[Reference(tenant_id, chat_id, token)] = None
    return tuple(found)


def minutes() -> int | None:
    """Return how long a reply waits to be read before it is e-mailed; None where replies are not e-mailed."""
    return policy.current().email_after_minutes if is_on() else None


def enqueue_reply(session: TenantSession, row: ChatRow, wait: int | None) -> None:
    """Queue an e-mail for the replies that the customer does not read in time.

    The e-mail is written when it is sent, so that it holds all unread replies, and none if all are read by then.
    A customer who does not see the chat gets it at once.

    :param wait: the tenant's `minutes`.
    """
    if wait is None or not address_in(row.contact):
        return
    row.mail_token = row.mail_token or token_hex(16)
    after = timedelta(minutes=0 if row.session_id is not None else wait)
    _enqueue(session, "email.reply", row.chat_id, {"chat_id": row.chat_id}, after)


def change_contact(row: ChatRow, contact: str) -> None:
    """Store how to reach the customer.

    A different address renews the token: e-mails sent so far may have reached another person, whose answers are no
    longer taken. So does an address after a phone number: the e-mails may have gone to any address before.
    """
    before, address = (address_in(one).lower() for one in (row.contact, contact))
    row.contact = contact
    if row.mail_token and address and address != before:
        row.mail_token = token_hex(16)


def enqueue_alert(session: TenantSession, address: str, data: Mapping[str, object]) -> None:
    """Have an alert sent to a member of staff; no server for e-mail, no alert."""
    if get_settings().smtp_host:
        _enqueue(session, "email.alert", "", {"to": address, **data}, timedelta())


def has_alerted(session: TenantSession, since: datetime) -> bool:
    """Return whether staff were sent an alert since a moment, or are about to be."""
    alerts = (OutboxRow.webhook_id == MAIL, OutboxRow.event == "email.alert", OutboxRow.created_at > since)
    sent = select(OutboxRow.delivery_id).where(*alerts, OutboxRow.state != "dead")
    return session.scalar(sent.limit(1)) is not None


def _enqueue(
    session: TenantSession, event: MailEvent, chat_id: str, data: Mapping[str, object], wait: timedelta
) -> None:
    _ensure_receiver(session)
    outbox.add(session, MAIL, event, chat_id, data, due_at=datetime.now(UTC) + wait)


def _ensure_receiver(session: TenantSession) -> None:
    """Add the receiver of e-mail to the tenant's webhooks: rows of the outbox refer to one."""
    if session.find(WebhookRow, MAIL) is not None:
        return
    row = WebhookRow(webhook_id=MAIL, url="", events=[], secrets=[], created_at=datetime.now(UTC))
    # Another process may be faster.
    with suppress(IntegrityError), session.begin_nested():
        session.add(row)
