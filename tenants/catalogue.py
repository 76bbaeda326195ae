"""Which of a tenant's documents fit a selection, page by page."""

from bisect import bisect_right
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select

from tenants import context, database, documents, freshness
from tenants.documents import DocumentRecord
from tenants.models import DocumentRow


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions, all of which must hold. None is open; an empty tuple matches nothing.

    :param languages: as documents name them, such as `ru`.
    :param words: text that the title or the id holds, letter case aside.
    :param flagged: whether something about the text wants an operator's eye.
    :param stale: whether answers have lately been standing on it though it is in doubt, as `tenants.freshness` says.
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


@dataclass(frozen=True, slots=True)
class Page:
    """Some documents by id, out of `total`. `following` is what to ask for next; None on the last page."""

    documents: tuple[DocumentRecord, ...]
    total: int
    following: str | None


def page(selection: Selection, *, after: str = "", limit: int = 50) -> Page:
    """The first documents of a selection whose ids come after `after`, in the order of their characters."""
    matching = doc_ids(selection)
    start = bisect_right(matching, after)
    chosen = matching[start : start + limit]
    records = documents.find(chosen)
    # One that was removed in between is left out.
    shown = tuple(records[doc_id] for doc_id in chosen if doc_id in records)
    return Page(shown, len(matching), chosen[-1] if start + limit < len(matching) else None)


def doc_ids(selection: Selection) -> list[str]:
    """The ids of all documents of the tenant that fit, in the order of their characters."""
    light = select(DocumentRow.doc_id, DocumentRow.title, DocumentRow.tags, DocumentRow.flags)
    query = light.where(DocumentRow.tenant_id == context.current().tenant_id, *_conditions(selection))
    in_doubt = None if selection.stale is None else {document.doc_id for document in freshness.stale()}
    with database.reading() as session:
        # Databases differ in how they compare letters and look into lists, so that is done here.
        return sorted(
            doc_id
            for doc_id, title, tags, flags in session.execute(query)
            if _matches(selection, doc_id, title, tags, flags)
            and (in_doubt is None or selection.stale == (doc_id in in_doubt))
        )


def _conditions(selection: Selection) -> list[ColumnElement[bool]]:
    chosen = {
        DocumentRow.status: selection.statuses,
        DocumentRow.trust: selection.trust,
        DocumentRow.project_key: selection.project_keys,
        DocumentRow.evidence_tier: selection.evidence_tiers,
        DocumentRow.source_type: selection.source_types,
        DocumentRow.lang: selection.languages,
    }
    conditions: list[ColumnElement[bool]] = [
        column.in_(values) for column, values in chosen.items() if values is not None
    ]
    if selection.date_from is not None:
        conditions.append(DocumentRow.updated_at >= selection.date_from)
    if selection.date_to is not None:
        conditions.append(DocumentRow.updated_at <= selection.date_to)
    return conditions


def _matches(selection: Selection, doc_id: str, title: str, tags: list[str], flags: list[str]) -> bool:
    words = selection.words.casefold()
    return (
        (selection.doc_ids is None or doc_id in selection.doc_ids)
        and (selection.tags is None or not set(selection.tags).isdisjoint(tags))
        and (selection.flagged is None or selection.flagged == bool(flags))
        and (words in title.casefold() or words in doc_id.casefold())
    )
