"""Notices next to an answer: a contradicting document, an outdated source, a rejected approach."""

from collections.abc import Iterator
from dataclasses import replace
from textwrap import shorten

from components.judge.approaches import proposed
from components.language.marks import on_one_line
from components.language.texts import day, text
from components.language.words import stems
from components.turn import Citation, Conflict, Draft, Origin, Passage, RejectedApproach, Statement, Turn

_MAX_QUOTE_LENGTH = 200
_MAX_CONFLICTS = 2
_MAX_RELATED = 3
_STATED = 0.7
"""Share of a statement's words that a claim must have to state the same."""


def with_context_citations(draft: Draft, turn: Turn) -> Draft:
    """Append citations to the draft: passages that contradict it, and documents to read that are linked to cited ones.

    No [N] in the text refers to them. Only a sentence that the draft states can be contradicted; each document is added
    once.
    """
    for conflict in turn.evidence.conflicts:
        other = _other_side(conflict, draft)
        if other is not None and _count(draft, "conflicting") < _MAX_CONFLICTS:
            draft = _with_citation(draft, other.passage, other.span, "conflicting")
    cited = {one.passage.doc_id for one in draft.citations if one.origin == "primary"}
    for related in turn.evidence.related:
        is_near = not cited.isdisjoint((related.from_doc, related.to_doc))
        if is_near and related.passage.sentences and _count(draft, "related") < _MAX_RELATED:
            draft = _with_citation(draft, related.passage, related.passage.sentences[0], "related")
    return draft


def source_notices(draft: Draft, turn: Turn) -> Iterator[str]:
    """Notices about the sources of a shown draft. Call it with the draft of `with_context_citations`."""
    primary = [citation.passage for citation in draft.citations if citation.origin == "primary"]
    outdated = next((passage for passage in primary if passage.status != "active"), None)
    if outdated is not None:
        yield _outdated(outdated, turn)
    for citation in draft.citations:
        if citation.origin == "conflicting" and primary:
            yield _contradicted(primary[0], citation, turn.locale)
    yield from rejections(draft, turn)


def rejections(draft: Draft | None, turn: Turn) -> Iterator[str]:
    """Yield notices about rejected approaches that the draft omits or the question asks about."""
    asked_about = (one for one in turn.evidence.rejected if proposed(turn.question, one))
    for approach in dict.fromkeys((*(draft.withheld if draft else ()), *asked_about)):
        yield _rejected(approach, turn.locale)


def _other_side(conflict: Conflict, draft: Draft) -> Statement | None:
    """Return the side of a conflict that the draft does not state; None if it states neither."""
    if _states(draft, conflict.trusted):
        return conflict.other
    return conflict.trusted if _states(draft, conflict.other) else None


def _states(draft: Draft, statement: Statement) -> bool:
    """Return whether a claim that cites the document has most of the statement's words."""
    cited = {one.index for one in draft.citations if one.passage.doc_id == statement.passage.doc_id}
    stated = frozenset(stems(statement.text))
    return any(
        len(stated.intersection(stems(claim.text))) >= _STATED * len(stated)
        for claim in draft.claims
        if not cited.isdisjoint(claim.citations)
    )


def _count(draft: Draft, origin: Origin) -> int:
    return sum(citation.origin == origin for citation in draft.citations)


def _with_citation(draft: Draft, passage: Passage, span: tuple[int, int], origin: Origin) -> Draft:
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
        said=shorten(on_one_line(other.excerpt), _MAX_QUOTE_LENGTH, placeholder="…"),
        index=other.index,
    )


def _rejected(approach: RejectedApproach, locale: str) -> str:
    key = "rejected" if approach.reason else "rejected_plain"
    reason = approach.reason.rstrip(". ")
    return text(f"notices.{key}", locale, approach=approach.text, date=day(approach.day, locale), reason=reason)


def _title(passage: Passage) -> str:
    return passage.title or passage.doc_id
