"""Reading the audit of the tenant in context: search, single records, export and verification of the chain."""

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import ColumnElement, Row, Select, select

from tenants.audit.chain import GENESIS, ChainVerifier, Content, Head, Link, Verification
from tenants.audit.entry import searchable
from tenants.core import context, fairness
from tenants.core.errors import NotFound
from tenants.desk.tables import FeedbackRow
from tenants.storage import database
from tenants.storage.audit_tables import AuditChainRow, AuditContentRow, AuditDocumentRow, AuditRow
from tenants.storage.mapping import record_of
from tenants.storage.searching import searching

ANSWERS = ("answered", "partially_answered")
"""Outcomes that claim an answer."""

_Turn: TypeAlias = tuple[int, str | None, datetime, str | None, str | None, str, str | None, bytes | None]
"""Number, id, time, outcome, reason and hash of a link; person and body of its content, None after erasure."""

_PAGE_SIZE = 500
"""Links read in one query when the whole chain is walked."""


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """Conditions for turns. An omitted condition does not restrict.

    :param document: the turn retrieved this document; with `cited`, its answer cites it.
    :param text: a substring of the question or the answer, case-insensitive.
    :param before: only links with a smaller number, for the next page.
    """

    since: datetime | None = None
    until: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    document: str | None = None
    cited: bool = False
    text: str | None = None
    session_id: str | None = None
    person: str | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded turn. `content` is None after erasure."""

    sequence: int
    turn_id: str
    at: datetime
    outcome: str
    reason: str | None
    person: str
    hash: str
    content: Mapping[str, object] | None

    @property
    def question(self) -> str | None:
        """Return the question; None after erasure."""
        request = (self.content or {}).get("request")
        return str(request["question"]) if isinstance(request, dict) else None


def find(turns: TurnQuery, *, limit: int = 50) -> tuple[Record, ...]:
    """Return the matching turns, newest first. Raises `Invalid` for a text: `search_too_long`."""
    query = _turns().where(AuditRow.kind == "turn").order_by(AuditRow.sequence.desc()).limit(limit)
    query = query.where(*_conditions(turns))
    with database.reading() if turns.text is None else searching() as session:
        rows = session.execute(query).all()
    return _records(rows)


def of(turn_ids: Collection[str]) -> Mapping[str, Record]:
    """Return the recorded turns among these ids, by id."""
    query = _turns().where(AuditRow.turn_id.in_(turn_ids))
    with database.reading() as session:
        rows = session.execute(query).all()
    return {record.turn_id: record for record in _records(rows)}


def get(turn_id: str) -> Record:
    """Return one turn. Raises `NotFound`."""
    record = of([turn_id]).get(turn_id)
    if record is None:
        raise NotFound
    return record


def unjudged(person: str, *, before: int | None = None, limit: int = 50) -> tuple[Record, ...]:
    """Return turns with an answer that neither this person nor an anonymous visitor has judged, newest first.

    :param person: their digest (`tenants.privacy.persons.digest`).
    """
    judged = (
        select(FeedbackRow.turn_id)
        .where(
            FeedbackRow.turn_id == AuditRow.turn_id,
            FeedbackRow.person.in_((person, "")),
        )
        .exists()
    )
    query = _turns().where(
        AuditRow.kind == "turn", AuditRow.outcome.in_(ANSWERS), AuditContentRow.sequence.is_not(None), ~judged
    )
    if before is not None:
        query = query.where(AuditRow.sequence < before)
    with database.reading() as session:
        rows = session.execute(query.order_by(AuditRow.sequence.desc()).limit(limit)).all()
    return _records(rows)


def links(since: datetime | None = None, until: datetime | None = None) -> Iterator[Link]:
    """Yield the chain in order with contents. Read in batches, so any length fits; questions have priority."""
    after = 0
    while page := _next_links(after, since, until):
        for link in page:
            fairness.yield_to_questions()
            yield link
        after = page[-1].sequence


def words(link: Link) -> tuple[str, str]:
    """Return the question and the answer; both empty if the content was erased or is unreadable."""
    try:
        content = json.loads(link.content.body) if link.content else None
        return (content["request"]["question"], content["answer"]["answer"]["text"]) if content else ("", "")
    except (ValueError, KeyError, TypeError):
        return "", ""


def head() -> Head | None:
    """Return the newest link according to the chain's own record."""
    with database.reading() as session:
        row = session.find(AuditChainRow)
        return Head(row.sequence, row.hash) if row else None


def verify(earlier: Head | None = None) -> Verification:
    """Verify the whole chain.

    :param earlier: a head that was saved earlier and must still be in the chain.
    """
    # Read before the links, so that a link added meanwhile does not look like a truncated chain.
    newest = head() or Head(0, GENESIS)
    verifier = ChainVerifier(context.current().tenant_id, [newest] if earlier is None else [newest, earlier])
    verifier.feed(links())
    return verifier.result()


def _next_links(after: int, since: datetime | None, until: datetime | None) -> list[Link]:
    query = _links().where(AuditRow.sequence > after).order_by(AuditRow.sequence).limit(_PAGE_SIZE)
    if since is not None:
        query = query.where(AuditRow.at >= since)
    if until is not None:
        query = query.where(AuditRow.at < until)
    with database.reading() as session:
        return [_link(row, content) for row, content in session.execute(query)]


def _turns() -> Select[*_Turn]:
    same_link = AuditContentRow.sequence == AuditRow.sequence
    # Columns, not rows: a list has up to 500 of each.
    columns = (
        AuditRow.sequence, AuditRow.turn_id, AuditRow.at, AuditRow.outcome, AuditRow.reason, AuditRow.hash,
        AuditContentRow.person, AuditContentRow.body,
    )  # fmt: skip
    return select(*columns).select_from(AuditRow).outerjoin(AuditContentRow, same_link)


def _links() -> Select[AuditRow, AuditContentRow]:
    same_link = AuditContentRow.sequence == AuditRow.sequence
    return select(AuditRow, AuditContentRow).outerjoin(AuditContentRow, same_link)


def _conditions(query: TurnQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for column, value in (
        (AuditRow.outcome, query.outcome),
        (AuditRow.reason, query.reason),
        (AuditContentRow.session_id, query.session_id),
        (AuditContentRow.person, query.person),
    ):
        if value is not None:
            conditions.append(column == value)
    if query.since is not None:
        conditions.append(AuditRow.at >= query.since)
    if query.until is not None:
        conditions.append(AuditRow.at < query.until)
    if query.before is not None:
        conditions.append(AuditRow.sequence < query.before)
    if query.text is not None:
        conditions.append(AuditContentRow.text.contains(searchable(query.text), autoescape=True))
    if query.document is not None:
        conditions.append(AuditRow.sequence.in_(_links_to_document(query.document, cited=query.cited)))
    return conditions


def _links_to_document(doc_id: str, *, cited: bool) -> Select[int]:
    """Return the numbers of the links whose turns found, or cited, a document."""
    query = select(AuditDocumentRow.sequence).where(AuditDocumentRow.doc_id == doc_id)
    return query.where(AuditDocumentRow.cited.is_(True)) if cited else query


def _records(rows: Iterable[Row[*_Turn]]) -> tuple[Record, ...]:
    """Parse contents of 20 kB each. Questions have priority."""
    records = []
    for sequence, turn_id, at, outcome, reason, link_hash, person, body in rows:
        fairness.yield_to_questions()
        content = None if body is None else json.loads(zlib.decompress(body))
        records.append(Record(sequence, turn_id or "", at, outcome or "", reason, person or "", link_hash, content))
    return tuple(records)


def _link(row: AuditRow, content: AuditContentRow | None) -> Link:
    return record_of(Link, row, content=_content(content) if content else None)


def _content(row: AuditContentRow) -> Content:
    try:
        body = zlib.decompress(row.body).decode()
    except (zlib.error, UnicodeDecodeError):
        body = ""
    return Content(row.person, row.session_id, row.salt, body)
