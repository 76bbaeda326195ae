"""Writing to the audit: adding turns, erasing content, pruning. Each is one transaction per tenant."""

import logging
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Event
from typing import Literal

from sqlalchemy import ColumnElement, and_, delete, func, select

from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit.chain import GENESIS, Content, Kind, Link
from tenants.audit.entry import Entry, Findable, canonical
from tenants.core import context
from tenants.core.batches import batches
from tenants.core.context import Tenant, acting_as, working_for
from tenants.desk import articles, feedback
from tenants.desk.tables import FeedbackRow
from tenants.knowledge import gaps
from tenants.knowledge.gaps import RecordedMiss
from tenants.knowledge.tables import GapAskingRow
from tenants.storage import database
from tenants.storage.audit_tables import AuditChainRow, AuditContentRow, AuditDocumentRow, AuditRow, ErasureRow
from tenants.storage.tables import Base
from tenants.storage.tenant_session import TenantSession

log = logging.getLogger("opora.audit")

_LINK = ("sequence", "kind", "at", "turn_id", "outcome", "reason", "note", "digest", "previous")
SUBJECT = "audit"
"""Caller of records that reach the audit by themselves."""

_LOCK_MILLISECONDS = 200
"""Turns of other tenants wait meanwhile."""
_PRUNED_AT_ONCE = 1_000
"""Values per statement, which databases limit."""


@dataclass(frozen=True, slots=True)
class TurnOwner:
    """Selects turns by person (`audit.person`), by session, or by both."""

    person: str = ""
    session_id: str = ""

    def condition(self, rows: type[AuditContentRow] | type[FeedbackRow]) -> ColumnElement[bool]:
        """Return the condition for a table that has both columns."""
        conditions = ((rows.person, self.person), (rows.session_id, self.session_id))
        return and_(*(column == value for column, value in conditions if value))

    def covers(self, person: str, session_id: str) -> bool:
        """Whether the turns of a person in a session are selected."""
        return self.person in ("", person) and self.session_id in ("", session_id)


def append(entries: Iterable[Entry], settings: Settings) -> int:
    """Record turns of one tenant; skip those already recorded. Returns the number of new ones.

    Raises `Locked` if the chain is in use for long.
    """
    by_turn: dict[str, Entry] = {}
    for entry in entries:
        by_turn.setdefault(entry.turn_id, entry)
    tenant_id = next(iter(by_turn.values())).tenant_id
    with acting_as(Tenant(tenant_id, SUBJECT)), _appending(settings, _LOCK_MILLISECONDS) as chain:
        recorded = chain.session.scalars(select(AuditRow.turn_id).where(AuditRow.turn_id.in_(by_turn))).all()
        fresh = [entry for turn_id, entry in by_turn.items() if turn_id not in recorded]
        forgotten = _forgotten(chain.session)
        misses: list[RecordedMiss] = []
        unwanted: list[int] = []
        for entry in fresh:
            sequence = chain.add_turn(entry)
            if any(owner.covers(entry.person, entry.session_id) and entry.at <= until for owner, until in forgotten):
                unwanted.append(sequence)
            else:
                misses += [RecordedMiss(miss, entry.at, sequence) for miss in entry.misses]
        if unwanted:
            chain.forget(unwanted)
        if misses:
            gaps.count(chain.session, misses)
    return len(fresh)


def erase(owner: TurnOwner, settings: Settings) -> tuple[str, ...]:
    """Erase the content of someone's turns, and of those still on their way here. Returns the ids of these turns."""
    with _appending(settings) as chain:
        until = datetime.now(UTC)
        chain.session.merge(ErasureRow(person=owner.person, session_id=owner.session_id, until=until))
        rows = chain.session.execute(
            select(AuditRow.sequence, AuditRow.turn_id)
            .join(AuditContentRow, AuditContentRow.sequence == AuditRow.sequence)
            .where(owner.condition(AuditContentRow))
        ).all()
        if rows:
            chain.forget([row.sequence for row in rows])
    return tuple(row.turn_id for row in rows if row.turn_id)


def forgotten() -> Sequence[tuple[TurnOwner, datetime]]:
    """Return whose turns of the tenant in context were erased, and up to which moment."""
    with database.reading() as session:
        return _forgotten(session)


def is_forgotten(person: str, session_id: str, at: datetime) -> bool:
    """Return whether the turns of a person in a session of the tenant in context were erased after this moment."""
    named = ErasureRow.person.in_(("", person)), ErasureRow.session_id.in_(("", session_id))
    with database.reading() as session:
        return any(at <= row.until for row in session.scalars(select(ErasureRow).where(*named)))


def note_article(doc_id: str, act: Literal["published", "withdrawn"], version: int, settings: Settings) -> None:
    """Record in the chain that the caller has published or withdrawn an article.

    :param version: of the document.
    """
    caller = context.current()
    note = {"doc_id": doc_id, "act": act, "version": version, "person": caller.key("person")}
    with _appending(settings) as chain:
        chain.add("article", datetime.now(UTC), note=canonical(note))


def prune(before: datetime, settings: Settings) -> int:
    """Drop the links from before a moment, up to the first newer one. Returns how many.

    One large transaction would block the tenant's records, on SQLite all writers, and on PostgreSQL it could time out
    each time. The links are therefore dropped in batches.
    """
    newest = select(func.max(AuditRow.sequence))
    with database.reading(settings) as session:
        oldest = session.scalar(select(func.min(AuditRow.sequence)).where(AuditRow.at >= before))
        last = session.scalar(newest if oldest is None else newest.where(AuditRow.sequence < oldest)) or 0
    dropped = 0
    while some := _prune_some(last, before, settings):
        dropped += some
    return dropped


def prune_all(settings: Settings, closing: Event) -> None:
    """Drop the outdated turns of all tenants. A tenant whose turns cannot be dropped does not keep the others'.

    :param closing: set when the process stops.
    """
    now = datetime.now(UTC)
    for tenant in Registry(settings).list():
        if closing.is_set():
            return
        before = now - timedelta(days=policy.of(tenant).audit_days or settings.audit_days)
        with working_for(tenant.tenant_id, SUBJECT):
            if dropped := prune(before, settings):
                log.info("tenant=%r: %d audit records pruned", tenant.tenant_id, dropped)


def _prune_some(last: int, before: datetime, settings: Settings) -> int:
    """Drop the oldest links up to the number `last`, `_PRUNED_AT_ONCE` at most."""
    with _appending(settings) as chain:
        session = chain.session
        query = select(AuditRow.sequence, AuditRow.hash)
        query = query.where(AuditRow.sequence <= last).order_by(AuditRow.sequence)
        links = session.execute(query.limit(_PRUNED_AT_ONCE)).all()
        if not links:
            return 0
        newest = links[-1]
        old = AuditRow.sequence <= newest.sequence
        note = canonical({"sequence": newest.sequence, "hash": newest.hash})
        for rows in (AuditContentRow, AuditDocumentRow, GapAskingRow):
            session.execute(delete(rows).where(rows.sequence <= newest.sequence))
        articles.forget_previews(session)
        feedback.forget(session, old)
        session.execute(delete(AuditRow).where(old))
        session.execute(delete(ErasureRow).where(ErasureRow.until < before))
        chain.add("pruning", datetime.now(UTC), note=note)
        return len(links)


class _Chain:
    """A tenant's chain, locked for adding. `flush` writes the added rows, with one statement for each table."""

    def __init__(self, session: TenantSession, head: AuditChainRow) -> None:
        self.session = session
        self._head = head
        self._rows: dict[type[Base], list[dict[str, object]]] = {}

    def add_turn(self, entry: Entry) -> int:
        """Add a turn with its content and return its number."""
        content = Content(entry.person, entry.session_id, token_hex(16), entry.body)
        sequence = self.add(
            "turn",
            entry.at,
            turn_id=entry.turn_id,
            outcome=entry.outcome,
            reason=entry.reason,
            digest=content.digest,
        )
        key = {"sequence": sequence}
        findable = Findable.of(entry.body)
        findings = {"person": entry.person, "session_id": entry.session_id, "salt": content.salt, "text": findable.text}
        self._put(AuditContentRow, key | findings | {"body": zlib.compress(entry.body.encode(), level=1)})
        for doc_id, chunk_ids in findable.documents.items():
            cited = {"doc_id": doc_id, "cited": bool(chunk_ids), "chunk_ids": chunk_ids}
            self._put(AuditDocumentRow, key | cited)
        return sequence

    def add(
        self,
        kind: Kind,
        at: datetime,
        *,
        turn_id: str | None = None,
        outcome: str | None = None,
        reason: str | None = None,
        note: str | None = None,
        digest: str | None = None,
    ) -> int:
        """Add one link and return its number."""
        tenant_id, sequence, previous = self._head.tenant_id, self._head.sequence + 1, self._head.hash
        link = Link(tenant_id, sequence, kind, at, turn_id, outcome, reason, note, digest, previous)
        hash_ = link.computed()
        self._put(AuditRow, {name: getattr(link, name) for name in _LINK} | {"hash": hash_})
        self._head.sequence, self._head.hash = sequence, hash_
        return sequence

    def forget(self, sequences: Sequence[int]) -> None:
        """Delete the content of these turns and note it in the chain."""
        self.flush()
        # In the order in which publishing an article locks them.
        articles.forget_previews(self.session)
        articles.forget_questions(self.session, gaps.wordings(self.session, sequences))
        gaps.forget(self.session, sequences)
        for chosen in batches(sequences):
            for rows in (AuditContentRow, AuditDocumentRow):
                self.session.execute(delete(rows).where(rows.sequence.in_(chosen)))
            feedback.forget(self.session, AuditRow.sequence.in_(chosen))
        self.add("erasure", datetime.now(UTC), note=canonical({"sequences": list(sequences)}))

    def flush(self) -> None:
        """Write the added rows."""
        for table, rows in self._rows.items():
            self.session.insert_rows(table, rows)
        self._rows.clear()

    def _put(self, table: type[Base], row: dict[str, object]) -> None:
        self._rows.setdefault(table, []).append(row)


@contextmanager
def _appending(settings: Settings, lock_milliseconds: int = 0) -> Iterator[_Chain]:
    with database.writing(settings, lock_milliseconds=lock_milliseconds) as session:
        # A row of the chain's own: ingestion for the tenant does not have to wait.
        head = session.locked(AuditChainRow, sequence=0, hash=GENESIS)
        with session.no_autoflush:
            chain = _Chain(session, head)
            yield chain
            chain.flush()


def _forgotten(session: TenantSession) -> list[tuple[TurnOwner, datetime]]:
    rows = session.scalars(select(ErasureRow))
    return [(TurnOwner(row.person, row.session_id), row.until) for row in rows]
