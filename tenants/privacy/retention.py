"""Retention of every table's rows, and the functions that delete them. A test fails for a table without a rule."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from typing import TypeAlias

from sqlalchemy import ColumnElement, Table, and_, delete, exists, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from settings import get_settings
from tenants.access import issued_tokens
from tenants.access.tables import RevocationRow, SpendingRow, TokenRow
from tenants.access.tokens import MAX_TTL_SECONDS
from tenants.accounts.settings_history import SettingChangeRow
from tenants.all_tables import Base
from tenants.chats import conversation_memory
from tenants.chats.tables import ConversationRow, OutboxRow, TicketRow
from tenants.core.batches import repeat
from tenants.core.errors import trail
from tenants.desk import first_run, invitations, operator_sessions
from tenants.desk.tables import InvitationRow, OneTimeLinkRow, OperatorSessionRow
from tenants.knowledge.tables import GapAskingRow, GapRow
from tenants.storage import database
from tenants.storage.audit_tables import ErasureRow
from tenants.work import idempotency, jobs
from tenants.work.tables import IdempotencyRow, JobRow, LeaseRow

DELIVERIES = timedelta(days=30)
"""Retention of webhook deliveries."""

AT_ONCE = 100
"""Rows that one transaction deletes: SQLite overwrites them, 2 MB of webhook deliveries in 60 ms."""

log = logging.getLogger("opora.retention")

Old: TypeAlias = Callable[[datetime], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Retention of a table's rows, in words.

    :param old: the condition of rows that are deleted, of all tenants, at a moment; None if other code deletes them.
    """

    kept: str
    old: Old | None = None


def prune(now: datetime | None = None, closing: Event | None = None) -> None:
    """Delete expired rows in small transactions. Called hourly. A table that cannot be pruned leaves the others.

    :param closing: set when the process stops.
    """
    now = now or datetime.now(UTC)
    for name, rule in RULES.items():
        if rule.old is None:
            continue
        try:
            repeat(partial(_prune_some, Base.metadata.tables[name], rule.old(now)), AT_ONCE, closing)
        except Exception as error:
            log.error("table %s is not pruned: %s", name, trail(error))


def _prune_some(table: Table, old: ColumnElement[bool], most: int) -> int:
    key = tuple_(*table.primary_key)
    with database.across_tenants(write=True) as session:
        keys = session.execute(select(*table.primary_key).where(old).limit(most)).all()
        if keys:
            # Without `old`, a row renewed since the first statement would be deleted.
            session.execute(delete(table).where(key.in_(keys), old))
        return len(keys)


def _older(moment: InstrumentedAttribute[datetime], days: Callable[[], timedelta]) -> Old:
    return lambda now: moment < now - days()


def _audit_days() -> timedelta:
    return timedelta(days=get_settings().audit_days)


def _ticket_days() -> timedelta:
    return timedelta(days=get_settings().ticket_days)


_TENANT = "as long as the tenant exists"
_DOCUMENT = "as long as the document exists"
_TURN = "as long as the turn, or until the person is erased"
_AUDIT = "`OPORA_AUDIT_DAYS`, or the policy's `audit_days`"
_CHAT = "as long as the chat"
_ASKED = exists().where(GapAskingRow.tenant_id == GapRow.tenant_id, GapAskingRow.gap_id == GapRow.gap_id)

RULES: Mapping[str, Rule] = {
    "tenants": Rule("until `opora tenant remove`"),
    "documents": Rule("until it is removed, in Opora or at its source"),
    "document_versions": Rule("the newest ten of each document"),
    "edges": Rule(_DOCUMENT),
    "rejected": Rule(_DOCUMENT),
    "agreements": Rule(_DOCUMENT),
    "contradictions": Rule(_DOCUMENT),
    "document_votes": Rule(_DOCUMENT),
    "articles": Rule("until it is removed; an unpublished one from a chat, until the person is erased"),
    "tools": Rule("until it is removed"),
    "generations": Rule("the current one and the one before it"),
    "lexicon_parts": Rule("as long as the generation exists"),
    "lexicon_states": Rule(_TENANT),
    "tickets": Rule(
        "`OPORA_TICKET_DAYS`, in a chat as long as the chat, or until the person is erased",
        # Tickets without a chat, which older versions opened.
        lambda now: and_(TicketRow.created_at < now - _ticket_days(), TicketRow.chat_id == ""),
    ),
    "conversations": Rule(
        "24 hours after the last turn, or until the person is erased",
        _older(ConversationRow.updated_at, lambda: conversation_memory.RETENTION),
    ),
    "idempotency": Rule(
        "24 hours, or until the person is erased", _older(IdempotencyRow.created_at, lambda: idempotency.RETENTION)
    ),
    "spending": Rule("`OPORA_AUDIT_DAYS`", lambda now: SpendingRow.day < (now - _audit_days()).date().isoformat()),
    "tokens": Rule(
        "30 days after it has expired, or until the person is erased",
        _older(TokenRow.expires_at, lambda: issued_tokens.KEPT_EXPIRED),
    ),
    "revocations": Rule(
        "367 days, longer than any token is valid",
        _older(RevocationRow.until, lambda: timedelta(seconds=MAX_TTL_SECONDS + 86_400)),
    ),
    "audit_chains": Rule(_TENANT),
    "audit": Rule(_AUDIT),
    "audit_contents": Rule(f"{_AUDIT}, or until the person is erased"),
    "audit_documents": Rule(_TURN),
    "feedback": Rule(_TURN),
    "erasures": Rule("`OPORA_AUDIT_DAYS`", _older(ErasureRow.until, _audit_days)),
    "gaps": Rule(
        "as long as any turn that asked it",
        lambda now: and_(~_ASKED, GapRow.last_at < now - timedelta(days=1)),
    ),
    "gap_askings": Rule(_TURN),
    "jobs": Rule(
        "7 days after its end",
        lambda now: and_(JobRow.state.in_(jobs.FINISHED), JobRow.finished_at < now - jobs.RETENTION),
    ),
    "watched_files": Rule("as long as the file"),
    "sites": Rule("until it is removed"),
    "chats": Rule(
        "the policy's `chat_days`, at least `OPORA_TICKET_DAYS` if its ticket was left open, or until the person is "
        "erased"
    ),
    "chat_messages": Rule(_CHAT),
    "chat_files": Rule("the policy's `chat_file_days`, or a day if it was never sent; at most as long as the chat"),
    "consents": Rule("until the person is erased"),
    "webhooks": Rule("until it is removed"),
    "outbox": Rule(
        "30 days unless it is still pending; at most as long as the chat",
        lambda now: and_(OutboxRow.state != "pending", OutboxRow.created_at < now - DELIVERIES),
    ),
    "operators": Rule("until it is removed"),
    "operator_sessions": Rule(
        "until it is unused for 12 hours, 14 days at most",
        lambda now: or_(
            OperatorSessionRow.seen_at < now - operator_sessions.IDLE,
            OperatorSessionRow.created_at < now - operator_sessions.LONGEST,
        ),
    ),
    "one_time_links": Rule("a day, or until it is used", _older(OneTimeLinkRow.created_at, lambda: first_run.LONGEST)),
    "invitations": Rule("a day, or until it is used", _older(InvitationRow.created_at, lambda: invitations.LONGEST)),
    "canned_replies": Rule("until it is removed"),
    "sign_in_providers": Rule("until it is removed"),
    "installation": Rule("as long as the installation exists"),
    "leases": Rule(
        "until it is released, or for an hour after it has expired",
        lambda now: LeaseRow.until < (now - timedelta(hours=1)).timestamp(),
    ),
    "audit_spool": Rule("until it is in the audit, about a second"),
    "evaluation_runs": Rule("the newest hundred of each tenant"),
    "evaluation_questions": Rule("until it is removed"),
    "evaluation_results": Rule("the newest hundred of each tenant"),
    "setting_changes": Rule("`OPORA_AUDIT_DAYS`", _older(SettingChangeRow.at, _audit_days)),
}
