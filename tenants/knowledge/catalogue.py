"""Selection of a tenant's documents, page by page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from sqlalchemy import ColumnElement, Text, cast, collate, false, func, or_, select

from tenants.knowledge import documents, freshness
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.tables import DocumentRow
from tenants.storage import database
from tenants.storage.tenant_session import TenantSession

_IN_SLICES = {"yield_per": 500}
"""Of a query's rows, so many at a time are in memory."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions, all of which must hold. None does not restrict; an empty tuple matches nothing.

    :param languages: codes such as `ru`.
    :param words: text contained in the title or the id, case-insensitive.
    :param flagged: whether an operator should check the text.
    :param stale: whether recent answers cite it although it is in doubt (`tenants.knowledge.freshness`).
    :param date_from: first ISO 8601 day of the document's last change; `date_to` the last one.
    """

    doc_ids: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    trust: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    project_keys: tuple[str, ...] | None = None
    evidence_tiers: tuple[str, ...] | None = None
    source_types: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    words: str = ""
    flagged: bool | None = None
    stale: bool | None = None
    date_from: str | None = None
    date_to: str | None = None


EVERYTHING = Selection()

Conditions: TypeAlias = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of documents by id, out of `total`. `following` is the cursor of the next page; None on the last page."""

    documents: tuple[DocumentRecord, ...]
    total: int
    following: str | None


def page(selection: Selection, *, after: str = "", limit: int = 50) -> Page:
    """Return the first documents of a selection with ids after `after`, in character order."""
    conditions = _conditions(selection)
    with database.reading() as session:
        first, total = _first_and_total(session, conditions, selection.words, after, limit + 1)
    chosen = first[:limit]
    records = documents.find(chosen)
    # A document that was removed in between is left out.
    shown = tuple(records[doc_id] for doc_id in chosen if doc_id in records)
    return Page(shown, total, chosen[-1] if len(first) > limit else None)


def batches(selection: Selection, size: int) -> Iterator[list[str]]:
    """Yield the ids of all matching documents, in character order, in batches of `size`.

    Documents may be changed in between, whether or not they still match then.
    """
    after, conditions = "", _conditions(selection)
    while True:
        with database.reading() as session:
            batch = _doc_ids(session, conditions, selection.words, after, size)
        if not batch:
            return
        yield batch
        after = batch[-1]


def _doc_ids(session: TenantSession, conditions: Conditions, words: str, after: str, limit: int) -> list[str]:
    order = _by_characters(session)
    following = *conditions, order > after
    if not words:
        return list(session.scalars(select(DocumentRow.doc_id).where(*following).order_by(order).limit(limit)))
    return list(islice(_with_words(session, following, words), limit))


def _first_and_total(
    session: TenantSession, conditions: Conditions, words: str, after: str, limit: int
) -> tuple[list[str], int]:
    """Return the first ids after one, and the total number; titles are read once."""
    if not words:
        total = session.count(DocumentRow, *conditions)
        return _doc_ids(session, conditions, "", after, limit), total
    first: list[str] = []
    total = 0
    for doc_id in _with_words(session, conditions, words):
        total += 1
        if doc_id > after and len(first) < limit:
            first.append(doc_id)
    return first, total


def _with_words(session: TenantSession, conditions: Conditions, words: str) -> Iterator[str]:
    """Return the ids of documents whose id or title contains these words, in character order."""
    query = select(DocumentRow.doc_id, DocumentRow.title).where(*conditions).order_by(_by_characters(session))
    with session.execute(query, execution_options=_IN_SLICES) as rows:
        yield from (doc_id for doc_id, title in rows if _has_words(words, doc_id, title))


def _by_characters(session: TenantSession) -> ColumnElement[str]:
    """Order ids by character, as SQLite does by default. PostgreSQL has an index for it."""
    if session.get_bind().dialect.name == "postgresql":
        return collate(DocumentRow.doc_id, "C")
    return DocumentRow.doc_id.expression


def _conditions(selection: Selection) -> Conditions:
    chosen = {
        DocumentRow.doc_id: selection.doc_ids,
        DocumentRow.status: selection.statuses,
        DocumentRow.trust: selection.trust,
        DocumentRow.project_key: selection.project_keys,
        DocumentRow.evidence_tier: selection.evidence_tiers,
        DocumentRow.source_type: selection.source_types,
        DocumentRow.lang: selection.languages,
    }
    conditions: list[ColumnElement[bool]] = [
        *(column.in_(values) for column, values in chosen.items() if values is not None),
    ]
    if selection.tags is not None:
        # A list of texts as JSON holds each of them as a whole, in its quotes.
        tags = cast(DocumentRow.tags, Text)
        # Replaced, because SQLite's LIKE takes small and capital Latin letters for the same.
        conditions.append(or_(false(), *(func.replace(tags, json.dumps(tag), "") != tags for tag in selection.tags)))
    if selection.flagged is not None:
        has_flags = cast(DocumentRow.flags, Text) != "[]"
        conditions.append(has_flags if selection.flagged else ~has_flags)
    if selection.stale is not None:
        in_doubt = DocumentRow.doc_id.in_({document.doc_id for document in freshness.stale()})
        conditions.append(in_doubt if selection.stale else ~in_doubt)
    if selection.date_from is not None:
        conditions.append(DocumentRow.updated_at >= selection.date_from)
    if selection.date_to is not None:
        conditions.append(DocumentRow.updated_at <= selection.date_to)
    return conditions


def _has_words(words: str, doc_id: str, title: str) -> bool:
    # Databases differ in case folding, so it is done here.
    folded = words.casefold()
    return folded in title.casefold() or folded in doc_id.casefold()
