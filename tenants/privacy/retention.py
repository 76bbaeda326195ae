"""Retention of every table's rows, and the functions that delete them. A test fails for a table without a rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists
from sqlalchemy.orm import InstrumentedAttribute

from settings import get_settings
from tenants.access import issued_tokens
from tenants.access.tokens import MAX_TTL_SECONDS
from tenants.accounts.changes import SettingChangeRow
from tenants.chats import conversations, handoffs, outbox
from tenants.desk import first_run, invitations, sessions
from tenants.desk.tables import OneTimeLinkRow, OperatorSessionRow
from tenants.storage import database
from tenants.storage.shared_tables import LeaseRow
from tenants.storage.tables import ConversationRow, ErasureRow, GapAskingRow, GapRow, RevocationRow, SpendingRow
from tenants.work import idempotency, jobs

DELIVERIES = timedelta(days=30)
"""Retention of webhook deliveries."""

Prune = Callable[[datetime], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """Retention of a table's rows, in words. `prune` deletes old rows of all tenants; None if other code does."""

    kept: str
    prune: Prune | None = None


def prune(now: datetime | None = None) -> None:
    """Delete expired rows. Called hourly."""
    for rule in RULES.values():
        if rule.prune is not None:
            rule.prune(now or datetime.now(UTC))


def _older(moment: InstrumentedAttribute[datetime], days: Callable[[], timedelta]) -> Prune:
    def delete_old(now: datetime) -> None:
        _delete(moment, moment < now - days())

    return delete_old


def _delete(column: InstrumentedAttribute[Any], old: ColumnElement[bool]) -> None:
    with database.across_tenants(write=True) as session:
        session.execute(delete(column.class_).where(old))


def _audit_days() -> timedelta:
    return timedelta(days=get_settings().audit_days)


def _prune_spending(now: datetime) -> None:
    _delete(SpendingRow.day, SpendingRow.day < (now - _audit_days()).date().isoformat())


def _prune_leases(now: datetime) -> None:
    _delete(LeaseRow.until, LeaseRow.until < (now - timedelta(hours=1)).timestamp())


def _prune_links(now: datetime) -> None:
    _delete(OneTimeLinkRow.created_at, OneTimeLinkRow.created_at < now - first_run.LONGEST)


def _prune_sessions(now: datetime) -> None:
    _delete(OperatorSessionRow.seen_at, OperatorSessionRow.seen_at < now - sessions.IDLE)
    _delete(OperatorSessionRow.created_at, OperatorSessionRow.created_at < now - sessions.LONGEST)


def _prune_gaps(now: datetime) -> None:
    asked = exists().where(GapAskingRow.tenant_id == GapRow.tenant_id, GapAskingRow.gap_id == GapRow.gap_id)
    _delete(GapRow.last_at, and_(~asked, GapRow.last_at < now - timedelta(days=1)))


_TENANT = "as long as the tenant"
_DOCUMENT = "as long as its document"
_TURN = "with its turn, or until the person is erased"
_AUDIT = "`OPORA_AUDIT_DAYS`, or the policy's `audit_days`"
_CHAT = "with its chat"

RULES: Mapping[str, Rule] = {
    "tenants": Rule("until `opora tenant remove`"),
    "documents": Rule("until it is removed, or its source has it no more"),
    "document_versions": Rule("the newest ten of a document"),
    "edges": Rule(_DOCUMENT),
    "rejected": Rule(_DOCUMENT),
    "agreements": Rule(_DOCUMENT),
    "contradictions": Rule(_DOCUMENT),
    "document_votes": Rule(_DOCUMENT),
    "articles": Rule("until it is removed"),
    "tools": Rule("until it is removed"),
    "generations": Rule("the one in use and the one before it"),
    "lexicon_parts": Rule("as long as its generation"),
    "lexicon_states": Rule(_TENANT),
    "tickets": Rule(
        "`OPORA_TICKET_DAYS`, in chats as long as the chat, or until the person is erased", handoffs.forget_old
    ),
    "conversations": Rule(
        "24 hours after the last turn, or until the person is erased",
        _older(ConversationRow.updated_at, lambda: conversations.RETENTION),
    ),
    "idempotency": Rule("24 hours, or until the person is erased", idempotency.forget_old),
    "spending": Rule("`OPORA_AUDIT_DAYS`", _prune_spending),
    "tokens": Rule("30 days after it has expired, or until the person is erased", issued_tokens.forget_expired),
    "revocations": Rule(
        "as long as a token of then can live: 366 days",
        _older(RevocationRow.until, lambda: timedelta(seconds=MAX_TTL_SECONDS + 86_400)),
    ),
    "audit_chains": Rule(_TENANT),
    "audit": Rule(_AUDIT),
    "audit_contents": Rule(f"{_AUDIT}, or until the person is erased"),
    "audit_documents": Rule(_TURN),
    "feedback": Rule(_TURN),
    "erasures": Rule("`OPORA_AUDIT_DAYS`", _older(ErasureRow.until, _audit_days)),
    "gaps": Rule("as long as a turn is kept that asked for it", _prune_gaps),
    "gap_askings": Rule(_TURN),
    "jobs": Rule("7 days after its end", jobs.forget_old),
    "watched_files": Rule("as long as the file"),
    "sites": Rule("until it is removed"),
    "chats": Rule("the policy's `chat_days`, or until the person is erased"),
    "chat_messages": Rule(_CHAT),
    "chat_files": Rule("the policy's `chat_file_days`, a day when it was never sent, or with its chat"),
    "consents": Rule("until the person is erased"),
    "webhooks": Rule("until it is removed"),
    "outbox": Rule("30 days after its end, or with its chat", lambda now: outbox.forget(now - DELIVERIES)),
    "operators": Rule("until it is removed"),
    "operator_sessions": Rule("12 hours without use, 14 days in all", _prune_sessions),
    "one_time_links": Rule("a day, or until it is used", _prune_links),
    "invitations": Rule("a day, or until it is used", invitations.forget_old),
    "canned_replies": Rule("until it is removed"),
    "sign_in_providers": Rule("until it is removed"),
    "installation": Rule("as long as the installation"),
    "leases": Rule("until its process gives it back, or an hour", _prune_leases),
    "audit_spool": Rule("until it is in the audit, a second later"),
    "evaluation_runs": Rule("the newest hundred of a tenant"),
    "evaluation_questions": Rule("until it is removed"),
    "evaluation_results": Rule("the newest hundred of a tenant"),
    "setting_changes": Rule("`OPORA_AUDIT_DAYS`", _older(SettingChangeRow.at, _audit_days)),
}
