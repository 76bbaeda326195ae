"""What stands beside an answer: another document that says otherwise, an outdated source, a rejected approach."""

from collections.abc import Iterator
from dataclasses import replace
from textwrap import shorten

from components.judge.approaches import proposed
from components.language.dates import day
from components.language.texts import text
from components.turn import Citation, Conflict, Draft, Origin, Passage, RejectedApproach, Statement, Turn

_LONGEST_QUOTE = 200
_MAX_CONFLICTS = 2
_MAX_RELATED = 3


def with_neighbours(draft: Draft, turn: Turn) -> Draft:
    """The draft with further citations behind its own: of what contradicts it, and of what to read beside it.

    No [N] of the text stands for them. What contradicts it is the newest evidence's word against a sentence that the
    draft quotes; each document is added once.
    """
    passages = {passage.chunk_id: passage for passage in turn.evidence.passages}
    for conflict in turn.evidence.conflicts:
        other = _against(conflict, draft)
        if other is not None and _count(draft, "conflicting") < _MAX_CONFLICTS:
            draft = _added(draft, passages[other.chunk_id], other.span, "conflicting")
    for related in turn.evidence.related:
        if related.passage.sentences and _count(draft, "related") < _MAX_RELATED:
            draft = _added(draft, related.passage, related.passage.sentences[0], "related")
    return draft


def about(draft: Draft, turn: Turn) -> Iterator[str]:
    """What the reader of a shown draft is told about its sources. Call it with the draft of `with_neighbours`."""
    primary = [citation.passage for citation in draft.citations if citation.origin == "primary"]
    outdated = next((passage for passage in primary if passage.status != "active"), None)
    if outdated is not None:
        yield _outdated(outdated, turn)
    for citation in draft.citations:
        if citation.origin == "conflicting" and primary:
            yield _contradicted(primary[0], citation, turn.locale)
    yield from rejections(draft, turn)


def rejections(draft: Draft, turn: Turn) -> Iterator[str]:
    """That an approach was rejected and why: one that the draft leaves out, or that the question asks about."""
    asked_about = (approach_ for approach_ in turn.evidence.rejected if proposed(turn.question, approach_))
    for approach in dict.fromkeys((*draft.withheld, *asked_about)):
        yield _rejected(approach, turn.locale)


def _against(conflict: Conflict, draft: Draft) -> Statement | None:
    """The side of a conflict that the draft does not quote; None when it quotes neither."""
    if _quotes(draft, conflict.trusted):
        return conflict.other
    return conflict.trusted if _quotes(draft, conflict.other) else None


def _quotes(draft: Draft, statement: Statement) -> bool:
    start, end = statement.span
    return any(
        citation.passage.chunk_id == statement.chunk_id and citation.span[0] < end and start < citation.span[1]
        for citation in draft.citations
        if citation.origin == "primary"
    )


def _count(draft: Draft, origin: Origin) -> int:
    return sum(citation.origin == origin for citation in draft.citations)


def _added(draft: Draft, passage: Passage, span: tuple[int, int], origin: Origin) -> Draft:
    if any(citation.passage.doc_id == passage.doc_id for citation in draft.citations):
        return draft
    index = max((citation.index for citation in draft.citations), default=0) + 1
    citation = Citation(index, passage, passage.text[slice(*span)], span, origin)
    return replace(draft, citations=(*draft.citations, citation))


def _outdated(passage: Passage, turn: Turn) -> str:
    passage_values = {"title": _title(passage), "date": day(passage.updated_at, turn.locale)}
    for related in turn.evidence.related:
        if related.kind == "supersedes" and related.to_doc == passage.doc_id:
            new = related.passage
            since = day(new.updated_at, turn.locale)
            return text("notices.replaced", turn.locale, **passage_values, new_title=_title(new), new_date=since)
    return text(f"notices.{passage.status}", turn.locale, **passage_values)


def _contradicted(passage: Passage, other: Citation, locale: str) -> str:
    key = "contradicted" if other.passage.status == "active" else "contradicted_by_outdated"
    return text(
        f"notices.{key}",
        locale,
        title=_title(passage),
        date=day(passage.updated_at, locale),
        other_title=_title(other.passage),
        other_date=day(other.passage.updated_at, locale),
        said=shorten(other.excerpt, _LONGEST_QUOTE, placeholder="…"),
        index=other.index,
    )


def _rejected(approach: RejectedApproach, locale: str) -> str:
    key = "rejected" if approach.reason else "rejected_plain"
    reason = approach.reason.rstrip(". ")
    return text(f"notices.{key}", locale, approach=approach.text, date=day(approach.day, locale), reason=reason)


def _title(passage: Passage) -> str:
    return passage.title or passage.doc_id
