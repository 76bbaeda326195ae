"""What a step has changed in its turn, as JSON values. It works for any component."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from pydantic_core import to_json

from components.language.personal import mask
from components.turn import Claim, Draft, Evidence, Passage, Query, Reply, Turn, Verdict

Words: TypeAlias = Callable[[str], str | None]
"""How a text goes into a trace: None where it must not."""

LONGEST = 2_000
"""Characters of one text in a trace; a chunk has no more as a rule."""


_NO_DRAFT = Draft("", (), ())


def withheld(text: str) -> None:
    """No words at all: the tenant has not asked for them."""


@lru_cache(maxsize=4_096)
def masked(text: str) -> str:
    """The words without personal data; most are passages, the same ones again and again."""
    return mask(text[:LONGEST])


def as_json(value: object) -> str:
    """JSON text."""
    return to_json(value).decode()


def changes(before: Turn, after: Turn, words: Words) -> dict[str, object]:
    """What is different in `after`, by the names that the turn has for it; empty when nothing is."""
    changed: dict[str, object] = {}
    for name in ("intent", "risk", "complexity", "passes", "outcome", "reason"):
        if (value := getattr(after, name)) != getattr(before, name):
            changed[name] = value
    if after.meant != before.meant:
        changed["meant"] = words(after.meant)
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


def verdict(given: Verdict) -> dict[str, object]:
    """Where the turn goes, with each gate as `score / threshold`."""
    return {
        "route": given.route,
        "reasons": given.reasons,
        "gates": {gate.name: f"{gate.score:.3g} / {gate.threshold:.3g}" for gate in given.gates},
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
        changed["grew"] = after.grew
    if after.judged is not before.judged or after.kept != before.kept:
        changed["graded"] = _graded(after, words)
        changed["relevance"] = _figure(after.relevance)
    if after.adequacy != before.adequacy:
        changed["adequacy"] = _figure(after.adequacy)
    if after.uncovered != before.uncovered:
        changed["uncovered"] = _each(after.uncovered, words)
    if after.related is not before.related:
        changed["related"] = [f"{one.from_doc} {one.kind} {one.to_doc}" for one in after.related]
    if after.rejected is not before.rejected:
        changed["rejected"] = [one.rejected_id for one in after.rejected]
    if after.conflicts is not before.conflicts:
        changed["conflicts"] = [
            {"kind": one.kind, "trusted": one.trusted.chunk_id, "other": one.other.chunk_id} for one in after.conflicts
        ]
    return {name: value for name, value in changed.items() if value not in (None, [])}


def _graded(evidence: Evidence, words: Words) -> list[dict[str, object]]:
    """The passages that were judged, those that were let through first."""
    known: Mapping[str, Passage] = {passage.chunk_id: passage for passage in evidence.passages}
    refused = (chunk_id for chunk_id in evidence.judged if chunk_id in known and chunk_id not in evidence.kept)
    return [
        _present(
            chunk_id=chunk_id,
            title=words(known[chunk_id].title),
            relevance=_figure(evidence.judged.get(chunk_id, 0.0)),
            verdict="YES" if chunk_id in evidence.kept else "NO",
        )
        for chunk_id in (*evidence.kept, *refused)
    ]


def _draft(before: Draft, after: Draft, words: Words) -> dict[str, object]:
    """What is new of a draft; claims with those that it has lost for want of support."""
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
    return [text for one in texts if (text := words(one))] or None


def _present(**given: object) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}


def _figure(value: float) -> float:
    return round(value, 4)
