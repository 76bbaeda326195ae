"""Database tables of chats: sites, chats with messages, files and tickets, consents, webhooks and their outbox."""

from datetime import datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from tenants.chats.transitions import State
from tenants.storage.sealed import SealedJson, SealedText
from tenants.storage.tables import TENANT_ID, Base, JsonObject, TenantKeyed, TenantOwned, TenantRow


class SiteRow(TenantOwned, Base):
    """A website with the tenant's widget. `key` is public, part of the page; `config` is a `SiteConfig`.

    `secrets` sign visitor tokens, newest first, as `{"secret": ..., "created_at": ...}`; `identity_secret` verifies the
    identity tokens signed by the tenant's own site, None if it signs none.
    """

    __tablename__ = "sites"
    unknown = "site_unknown"
    __table_args__ = (Index("ix_sites_tenant", "tenant_id"),)

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id))
    name: Mapped[str] = mapped_column(Text)
    origins: Mapped[list[str]] = mapped_column(JSON)
    config: Mapped[JsonObject] = mapped_column(JSON)
    secrets: Mapped[list[dict[str, str]]] = mapped_column(SealedJson)
    identity_secret: Mapped[str | None] = mapped_column(SealedText)
    identity_required: Mapped[bool]
    created_at: Mapped[datetime]


class ChatRow(TenantKeyed, Base):
    """A conversation between a customer, the assistant and operators.

    A chat with a `session_id`, even an empty one, begins with a question from outside, such as over the API. Its
    customer does not read it; `contact` says how to reach them, if the caller or the visitor gave it. `mail_token`
    names the chat in references of e-mails, `mailed_seq` is the last message that was e-mailed.

    `version` increases with every change of state or owner; `last_seq` is the number of the newest message. `failures`
    counts consecutive turns without an answer. `undo` is the state before an operator's last change, see
    `tenants.chats.undo`.

    The statistics of `tenants.insight` use: the time of the customer's first message (`asked_at`), of the assistant's
    first answer (`answered_at`), of the first request for a person (`requested_at`), of the first public reply of a
    person (`replied_at`) and of the first return to an ended chat (`returned_at`); `outcome` and `outcome_reason` are
    those of the newest turn about the tenant's business.
    """

    __tablename__ = "chats"
    __table_args__ = (
        Index("ix_chats_state", "tenant_id", "state", "waiting_since"),
        Index("ix_chats_state_updated", "tenant_id", "state", "updated_at"),
        Index("ix_chats_assignee", "tenant_id", "assignee"),
        Index("ix_chats_subject", "tenant_id", "subject", "updated_at"),
        Index("ix_chats_updated", "tenant_id", "updated_at"),
        Index("ix_chats_asked", "tenant_id", "asked_at"),
    )

    chat_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID)
    site: Mapped[str] = mapped_column(String(64))
    channel: Mapped[str] = mapped_column(String(32))
    session_id: Mapped[str | None] = mapped_column(String(128))
    contact: Mapped[str | None] = mapped_column(SealedText)
    locale: Mapped[str] = mapped_column(String(8))
    state: Mapped[State] = mapped_column(String(16), default="bot")
    assignee: Mapped[str | None] = mapped_column(TENANT_ID)
    version: Mapped[int] = mapped_column(default=0)
    last_seq: Mapped[int] = mapped_column(default=0)
    ticket_id: Mapped[str | None] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(String(64), default="")
    confidence: Mapped[float | None]
    failures: Mapped[int] = mapped_column(default=0)
    reopened: Mapped[int] = mapped_column(default=0)
    csat: Mapped[int | None]
    csat_comment: Mapped[str] = mapped_column(Text, default="")
    customer_seen: Mapped[int] = mapped_column(default=0)
    operator_seen: Mapped[int] = mapped_column(default=0)
    waiting_since: Mapped[datetime | None]
    snoozed_until: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]
    asked_at: Mapped[datetime | None]
    answered_at: Mapped[datetime | None]
    requested_at: Mapped[datetime | None]
    replied_at: Mapped[datetime | None]
    returned_at: Mapped[datetime | None]
    outcome: Mapped[str] = mapped_column(String(32), default="", server_default="")
    outcome_reason: Mapped[str] = mapped_column(String(64), default="", server_default="")
    mail_token: Mapped[str | None] = mapped_column(String(32))
    mailed_seq: Mapped[int] = mapped_column(default=0, server_default="0")
    undo: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ChatMessageRow(TenantOwned, Base):
    """A message of a chat. `client_id` is the sender's id for it, so that a repeated request stores it once.

    `operator` is the subject of the operator who wrote it, `name` their display name; `body` depends on the kind: the
    whole turn, a file, a change of state. If `original` is set, it is the message, and `text` is a copy for search
    without personal data.
    """

    __tablename__ = "chat_messages"
    __table_args__ = (
        UniqueConstraint("tenant_id", "chat_id", "client_id"),
        UniqueConstraint("tenant_id", "message_id"),
        ForeignKeyConstraint(
            ["tenant_id", "chat_id"], ["chats.tenant_id", "chats.chat_id"], ondelete="CASCADE", name="fk_message_chat"
        ),
    )

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    message_id: Mapped[str] = mapped_column(String(32))
    client_id: Mapped[str | None] = mapped_column(String(128))
    author: Mapped[str] = mapped_column(String(16))
    operator: Mapped[str] = mapped_column(TENANT_ID)
    name: Mapped[str] = mapped_column(TENANT_ID)
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    original: Mapped[str | None] = mapped_column(SealedText)
    turn_id: Mapped[str] = mapped_column(String(128))
    body: Mapped[JsonObject] = mapped_column(JSON)
    created_at: Mapped[datetime]


class ChatFileRow(TenantOwned, Base):
    """A customer's file, scanned before it is stored. It has no `message_id` until it is sent with a message.

    `secret` is the key of the encrypted file in the store. Without one the content is in the row, as in older versions.
    """

    __tablename__ = "chat_files"
    __table_args__ = (
        Index("ix_chat_files_chat", "tenant_id", "chat_id"),
        Index("ix_chat_files_created", "tenant_id", "created_at"),
        ForeignKeyConstraint(
            ["tenant_id", "chat_id"], ["chats.tenant_id", "chats.chat_id"], ondelete="CASCADE", name="fk_file_chat"
        ),
    )

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    file_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(32))
    name: Mapped[str] = mapped_column(Text)
    media_type: Mapped[str] = mapped_column(String(128))
    size: Mapped[int] = mapped_column(BigInteger)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    secret: Mapped[str | None] = mapped_column(SealedText)
    message_id: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[datetime]


class ConsentRow(TenantKeyed, Base):
    """A consent: the text as shown, the time and the address."""

    __tablename__ = "consents"
    __table_args__ = (Index("ix_consents_subject", "tenant_id", "subject"),)

    consent_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID)
    site: Mapped[str] = mapped_column(String(64))
    text: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime]
    withdrawn_at: Mapped[datetime | None]


class WebhookRow(TenantKeyed, Base):
    """Where events of a tenant's chats are sent.

    `secrets` sign them, newest first, as `{"secret": ..., "created_at": ...}`; an older one signs too for a while.
    """

    __tablename__ = "webhooks"
    unknown = "webhook_unknown"

    webhook_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[str]] = mapped_column(JSON)
    secrets: Mapped[list[dict[str, str]]] = mapped_column(SealedJson)
    created_at: Mapped[datetime]


class OutboxRow(TenantOwned, Base):
    """An event on its way to a webhook, written in the transaction that it tells of."""

    __tablename__ = "outbox"
    unknown = "delivery_unknown"
    __table_args__ = (
        Index("ix_outbox_waiting", "state", "tenant_id", "webhook_id", "next_at"),
        Index("ix_outbox_created", "created_at"),
        Index("ix_outbox_tenant_created", "tenant_id", "created_at"),
        Index("ix_outbox_chat", "tenant_id", "chat_id"),
        ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.webhook_id"],
            ondelete="CASCADE",
            name="fk_outbox_webhook",
        ),
    )

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    delivery_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(String(32))
    chat_id: Mapped[str] = mapped_column(String(32))
    event: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16), default="pending")
    attempts: Mapped[int] = mapped_column(default=0)
    next_at: Mapped[datetime]
    fault: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[datetime]
    delivered_at: Mapped[datetime | None]


class TicketRow(TenantKeyed, Base):
    """A question handed over to a person. `chat_id` is empty for a turn that belongs to no chat."""

    __tablename__ = "tickets"
    __table_args__ = (
        Index("ix_tickets_tenant_created", "tenant_id", "created_at"),
        Index("ix_tickets_created", "created_at"),
        Index("ix_tickets_tenant_chat", "tenant_id", "chat_id"),
    )

    ticket_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    turn_id: Mapped[str] = mapped_column(String(128))
    session_id: Mapped[str] = mapped_column(String(128))
    subject: Mapped[str] = mapped_column(TENANT_ID)
    channel: Mapped[str] = mapped_column(String(128))
    reason: Mapped[str] = mapped_column(String(64))
    question: Mapped[str] = mapped_column(SealedText)
    draft: Mapped[str] = mapped_column(SealedText)
    chat_id: Mapped[str] = mapped_column(String(32), default="")
    closed_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class ConversationRow(TenantKeyed, Base):
    """The turns of a person's conversation, oldest first."""

    __tablename__ = "conversations"
    __table_args__ = (Index("ix_conversations_updated", "updated_at"),)

    subject: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    turns: Mapped[list[dict[str, object]]] = mapped_column(JSON)
    updated_at: Mapped[datetime]
