"""What a step changed in its turn, as JSON values, for any component."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from pydantic_core import to_json

from components.language.personal import mask
from components.turn import Claim, Draft, Evidence, Passage, Query, Reply, Turn, Verdict

Words: TypeAlias = Callable[[str], str | None]
"""Maps a text to its form in a trace; None when it must not appear."""

MAX_LENGTH = 2_000
"""Characters of one text in a trace; chunks are rarely longer."""


_NO_DRAFT = Draft("", (), ())


def withheld(text: str) -> None:
    """No text at all: the tenant has not enabled it."""


@lru_cache(maxsize=4_096)
def masked(text: str) -> str:
    """The text without personal data; cached, because most texts are passages that repeat."""
    return mask(text[:MAX_LENGTH])


def as_json(value: object) -> str:
    """JSON text."""
    return to_json(value).decode()


def changes(before: Turn, after: Turn, words: Words) -> dict[str, object]:
    """The differences in `after` by field name; empty when there are none."""
    changed: dict[str, object] = {}
    for name in ("intent", "risk", "complexity", "passes", "outcome", "reason"):
        if (value := getattr(after, name)) != getattr(before, name):
            changed[name] = value
    if after.standalone_question != before.standalone_question:
        changed["meant"] = words(after.standalone_question)
    if after.query is not before.query:
        changed["query"] = _query(after.query, words)
    if after.evidence is not before.evidence:
        changed |= _evidence(before.evidence, after.evidence, words)
    if after.draft is not None and after.draft is not before.draft:
        changed["draft"] = _draft(before.draft or _NO_DRAFT, after.draft, words)
    if after.verdict != before.verdict:
        changed["verdict"] = verdict(after.verdict)
    if after.reply is not before.reply:
        changed["reply"] = _reply(after.reply, words)
    if after.degraded != before.degraded:
        changed["degraded"] = after.degraded
    return {name: value for name, value in changed.items() if value is not None}


def verdict(decision: Verdict) -> dict[str, object]:
    """The route of the turn, with each gate as `score / threshold`."""
    return {
        "route": decision.route,
        "reasons": decision.reasons,
        "gates": {gate.name: f"{gate.score:.3g} / {gate.threshold:.3g}" for gate in decision.gates},
    }


def _query(query: Query, words: Words) -> dict[str, object]:
    return _present(
        search=words(query.search),
        variants=_each(query.variants, words),
        recovery=query.recovery,
        codes=_each(query.codes, words),
    )


def _evidence(before: Evidence, after: Evidence, words: Words) -> dict[str, object]:
    changed: dict[str, object] = {}
    if after.passages != before.passages:
        remaining = {passage.chunk_id for passage in after.passages}
        changed["passages"] = len(remaining)
        changed["dropped"] = [passage.chunk_id for passage in before.passages if passage.chunk_id not in remaining]
        changed["grew"] = after.has_new
    if after.relevance_by_chunk is not before.relevance_by_chunk or after.relevant_ids != before.relevant_ids:
        changed["graded"] = _graded(after, words)
        changed["relevance"] = _figure(after.relevance)
    if after.adequacy != before.adequacy:
        changed["adequacy"] = _figure(after.adequacy)
    if after.uncovered != before.uncovered:
        changed["uncovered"] = _each(after.uncovered, words)
    if after.related is not before.related:
        changed["related"] = [f"{edge.from_doc} {edge.kind} {edge.to_doc}" for edge in after.related]
    if after.rejected is not before.rejected:
        changed["rejected"] = [approach.rejected_id for approach in after.rejected]
    if after.conflicts is not before.conflicts:
        changed["conflicts"] = [
            {"kind": conflict.kind, "trusted": conflict.trusted.chunk_id, "other": conflict.other.chunk_id}
            for conflict in after.conflicts
        ]
    return {name: value for name, value in changed.items() if value not in (None, [])}


def _graded(evidence: Evidence, words: Words) -> list[dict[str, object]]:
    """The graded passages, the accepted ones first."""
    passages: Mapping[str, Passage] = {passage.chunk_id: passage for passage in evidence.passages}
    refused = (
        chunk_id
        for chunk_id in evidence.relevance_by_chunk
        if chunk_id in passages and chunk_id not in evidence.relevant_ids
    )
    return [
        _present(
            chunk_id=chunk_id,
            title=words(passages[chunk_id].title),
            relevance=_figure(evidence.relevance_by_chunk.get(chunk_id, 0.0)),
            verdict="YES" if chunk_id in evidence.relevant_ids else "NO",
        )
        for chunk_id in (*evidence.relevant_ids, *refused)
    ]


def _draft(before: Draft, after: Draft, words: Words) -> dict[str, object]:
    """The changes of a draft; claims include those removed as unsupported."""
    changed: dict[str, object] = {}
    if after.text != before.text:
        changed["text"] = words(after.text)
    if after.claims != before.claims:
        remaining = {claim.text for claim in after.claims}
        changed["claims"] = [
            *(_claim(claim, claim.status, words) for claim in after.claims),
            *(_claim(claim, "dropped", words) for claim in before.claims if claim.text not in remaining),
        ]
    if after.missing != before.missing:
        changed["missing"] = _each(after.missing, words)
    for name in ("factuality", "factuality_status", "quality", "relevance", "confidence", "answerability"):
        if (value := getattr(after, name)) != getattr(before, name):
            changed[name] = _figure(value) if isinstance(value, float) else value
    return _present(**changed)


def _claim(claim: Claim, verdict: str, words: Words) -> dict[str, object]:
    quote = words(claim.quote) if claim.quote else None
    return _present(text=words(claim.text), verdict=verdict, citations=claim.citations, quote=quote)


def _reply(reply: Reply, words: Words) -> dict[str, object] | None:
    return (
        _present(
            text=words(reply.text),
            notice=words(reply.notice) if reply.notice else None,
            clarification=_each(reply.clarification or (), words),
            suggestions=_each(reply.suggestions, words),
        )
        or None
    )


def _each(texts: Iterable[str], words: Words) -> list[str] | None:
    return [text for item in texts if (text := words(item))] or None


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _figure(value: float) -> float:
    return round(value, 4)
