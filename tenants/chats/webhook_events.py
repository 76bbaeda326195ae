"""Events of chats and evaluations for webhooks and e-mails: their names, and what each says about its chat."""

from typing import Literal, TypeAlias, get_args

from tenants.chats.tables import ChatRow

WebhookEvent: TypeAlias = Literal[
    "chat.started", "chat.message", "chat.handoff", "chat.state", "chat.rated", "quality.dropped"
]
WEBHOOK_EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)
MailEvent: TypeAlias = Literal["email.reply", "email.alert"]
MAIL_EVENTS: tuple[MailEvent, ...] = get_args(MailEvent)
TEST_EVENT = "webhook.test"
"""Sent on an admin's request, whatever events a receiver subscribes to."""


def webhook_fields(row: ChatRow) -> dict[str, object]:
    """Return the fields of a chat that every webhook event includes."""
    return {
        "chat_id": row.chat_id,
        "subject": row.subject,
        "site": row.site,
        "channel": row.channel,
        "contact": row.contact,
        "state": row.state,
        "assignee": row.assignee,
        "ticket_id": row.ticket_id,
    }
