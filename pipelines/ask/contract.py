"""What goes in and what comes out of a turn: the request, and the answer object `turn.v1`.

Every key of the answer is present on every path, null or empty, so a client never has to ask whether it is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    field_validator,
    model_validator,
)

from components import turn as turns
from components.answer.generative import WRITING
from components.models.calls import NOT_MADE, Call

QUESTION_LIMIT = 2_000
SHOWN = frozenset({"answered", "partially_answered", "low_confidence"})
"""Outcomes whose draft a visitor may read. Every other draft stays between the pipeline and the operator."""

LOCALE_FORM = r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"
_Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Keys = Annotated[tuple[_Key, ...], Field(max_length=100)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AskFilters(_Request):
    """Which passages may be found. A field left out is open; an empty list matches nothing."""

    project_keys: _Keys | None = None
    tags: _Keys | None = None
    source_types: _Keys | None = None
    evidence_tiers: _Keys | None = None
    statuses: tuple[turns.DocumentStatus, ...] | None = None
    doc_ids: _Keys | None = None
    date_from: str | None = None
    date_to: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _wrap_project_key(cls, given: object) -> object:
        if not isinstance(given, dict) or "project_key" not in given or "project_keys" in given:
            return given
        rest = {name: value for name, value in given.items() if name != "project_key"}
        return {**rest, "project_keys": [given["project_key"]]}

    @field_validator("date_from", "date_to")
    @classmethod
    def _be_a_day(cls, given: str | None) -> str | None:
        return None if given is None else date.fromisoformat(given).isoformat()

    def to_turn(self) -> turns.Filters:
        """The same filters as the pipeline carries them."""
        return turns.Filters(**self.model_dump())


class AskRequest(_Request):
    """One question. The tenant is not here: it comes from the token alone."""

    question: str
    session_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:~-]{1,128}$")] | None = None
    locale: Annotated[str, StringConstraints(pattern=LOCALE_FORM)] | None = None
    quality: turns.Quality = "balanced"
    filters: AskFilters | None = None
    anonymous: StrictBool = False

    @field_validator("question")
    @classmethod
    def _trim(cls, given: str) -> str:
        # NUL is legal in JSON and in no database text column.
        question = given.replace("\x00", " ").strip()
        if not question:
            raise ValueError("question_empty")
        if len(question) > QUESTION_LIMIT:
            raise ValueError("question_too_long")
        return question


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GateResult(_Part):
    name: str
    passed: bool
    score: float
    threshold: float


class VerdictPart(_Part):
    route: turns.Route
    reasons: tuple[str, ...]
    iterations: int
    max_iterations: int
    gates: tuple[GateResult, ...]


class AnswerPart(_Part):
    """`notice` stands above `text`. `missing` names what a partial answer leaves open."""

    text: str
    notice: str | None
    verified: bool
    missing: tuple[str, ...]


class RelatedPart(_Part):
    """A document that an edge ties to the evidence. `kind` reads from `from_doc` to `to_doc`."""

    doc_id: str
    chunk_id: str
    kind: turns.EdgeKind
    weight: float
    from_doc: str
    to_doc: str


class RejectedPart(_Part):
    """A rejected approach that the question comes near; its words are the operator's to look up."""

    rejected_id: str
    coverage: float


class ConflictPart(_Part):
    """Two passages that answer the question differently; `trusted` is the chunk to go by."""

    kind: turns.ConflictKind
    trusted: str
    other: str


class BesidePart(_Part):
    """What the answering step knew beside its evidence."""

    related: tuple[RelatedPart, ...]
    rejected: tuple[RejectedPart, ...]
    conflicts: tuple[ConflictPart, ...]


class CitationPart(_Part):
    """The passage behind one [N]; `span` is where `excerpt` lies in the passage, in characters.

    `origin`: `primary` evidence of the answer, a `related` document to read beside it, or one `conflicting` with it.
    """

    index: int
    doc_id: str
    chunk_id: str
    title: str
    heading: str
    excerpt: str
    span: tuple[int, int]
    url: str | None
    cited: bool
    origin: turns.Origin
    trust: turns.Trust
    score: float
    updated_at: str


class SourcePart(_Part):
    """The older, flat form of a citation."""

    source: str
    page_content: str
    snippet: str
    score: float


class ClaimPart(_Part):
    text: str
    status: turns.ClaimStatus
    citations: tuple[int, ...]
    quote: str


class Factuality(_Part):
    """`value` is the percentage of supported claims; `status` says whether anything was checked."""

    value: float
    status: turns.FactualityStatus


class Scores(_Part):
    quality: int
    relevance: float
    factuality: Factuality
    adequacy: float
    confidence: float
    hallucination: float


class Routing(_Part):
    intent: turns.Intent
    risk: turns.Risk
    complexity: turns.Complexity


class Clarification(_Part):
    """The near-miss topics to choose from."""

    options: tuple[str, ...]


class Handoff(_Part):
    """The way to a person. `open`: a ticket exists; `offered`: one can be asked for; `failed`: none could be opened."""

    status: Literal["open", "offered", "failed"]
    ticket_id: str | None = None
    channel: str | None = None
    created_at: str | None = None
    offer: str | None = None


class ChunkCounts(_Part):
    retrieved: int
    graded: int
    used: int


class QueryPart(_Part):
    original: str
    search: str
    hyde: bool
    recovery: turns.Recovery


class Meta(_Part):
    """How the answer came about. Times are milliseconds of wall clock."""

    provider: str
    model: str
    quality: turns.Quality
    cached: bool
    latency_ms: float
    latency_ms_by_step: Mapping[str, float]
    llm_calls: int
    tokens: Mapping[str, int]
    cost_usd: float | None
    chunks: ChunkCounts
    beside: BesidePart
    filters: Mapping[str, str | tuple[str, ...]]
    query: QueryPart
    degraded: tuple[str, ...]
    prompt_version: str


class TurnAnswer(_Part):
    """`turn.v1`."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)

    schema_: Literal["turn.v1"] = Field(
        default="turn.v1", validation_alias=AliasChoices("schema", "schema_"), serialization_alias="schema"
    )
    turn_id: str
    trace_id: str
    session_id: str
    locale: str
    outcome: turns.Outcome
    refusal_reason: turns.Reason | None
    verdict: VerdictPart
    answer: AnswerPart
    citations: tuple[CitationPart, ...]
    sources: tuple[SourcePart, ...]
    claims: tuple[ClaimPart, ...]
    scores: Scores
    routing: Routing
    suggested_questions: tuple[str, ...]
    clarification: Clarification | None
    handoff: Handoff | None
    meta: Meta

    @cached_property
    def encoded(self) -> str:
        """The object as JSON text, made once: the visitor gets it and the audit keeps it."""
        return self.model_dump_json()

    @classmethod
    def from_turn(
        cls,
        turn: turns.Turn,
        *,
        trace_id: str = "",
        steps: Mapping[str, float] | None = None,
        latency_ms: float = 0.0,
        handoff: Handoff | None = None,
        calls: Sequence[Call] = (),
    ) -> Self:
        """The contract object of a finished turn.

        :param turn: a turn whose `outcome` is decided.
        :param trace_id: where the turn can be looked into, when it is traced.
        :param steps: milliseconds by pipeline step.
        :param latency_ms: the whole turn, as the use case measured it.
        :param handoff: the way to a person, when this turn opens one.
        :param calls: the calls of language models that it made.
        :raises ValueError: the turn has no outcome yet.
        """
        if turn.outcome is None:
            raise ValueError("turn has no outcome")
        draft = (turn.best or turn.draft) if turn.outcome in SHOWN else None
        citations = draft.citations if draft else ()
        return cls(
            turn_id=turn.turn_id,
            trace_id=trace_id,
            session_id=turn.session_id,
            locale=turn.locale,
            outcome=turn.outcome,
            refusal_reason=turn.reason,
            verdict=_verdict(turn),
            answer=AnswerPart(
                text=turn.reply.text,
                notice=turn.reply.notice,
                verified=_verified(draft),
                missing=draft.missing if draft else (),
            ),
            citations=tuple(_citation(citation, draft) for citation in citations),
            sources=tuple(_source(citation) for citation in citations),
            claims=tuple(_claim(claim) for claim in draft.claims) if draft else (),
            scores=_scores(turn, draft),
            routing=Routing(intent=turn.intent, risk=turn.risk, complexity=turn.complexity),
            suggested_questions=turn.reply.suggestions,
            clarification=Clarification(options=turn.reply.clarification) if turn.reply.clarification else None,
            handoff=handoff,
            meta=_meta(turn, citations, steps or {}, latency_ms, calls),
        )


def _verdict(turn: turns.Turn) -> VerdictPart:
    return VerdictPart(
        route=turn.verdict.route,
        reasons=turn.verdict.reasons,
        iterations=turn.passes,
        max_iterations=turn.max_passes,
        gates=tuple(
            GateResult(name=gate.name, passed=gate.passed, score=_round(gate.score), threshold=gate.threshold)
            for gate in turn.verdict.gates
        ),
    )


def _verified(draft: turns.Draft | None) -> bool:
    return (
        draft is not None
        and draft.factuality_status == "checked"
        and all(claim.status == "supported" for claim in draft.claims)
    )


def _citation(citation: turns.Citation, draft: turns.Draft | None) -> CitationPart:
    passage = citation.passage
    return CitationPart(
        index=citation.index,
        doc_id=passage.doc_id,
        chunk_id=passage.chunk_id,
        title=passage.title,
        heading=passage.heading,
        excerpt=citation.excerpt,
        span=citation.span,
        url=passage.url,
        cited=draft is not None and f"[{citation.index}]" in draft.text,
        origin=citation.origin,
        trust=passage.trust,
        score=_round(passage.score),
        updated_at=passage.updated_at,
    )


def _source(citation: turns.Citation) -> SourcePart:
    passage = citation.passage
    return SourcePart(
        source=passage.source or passage.doc_id,
        page_content=passage.text,
        snippet=citation.excerpt,
        score=_round(passage.score),
    )


def _claim(claim: turns.Claim) -> ClaimPart:
    return ClaimPart(text=claim.text, status=claim.status, citations=claim.citations, quote=claim.quote)


def _scores(turn: turns.Turn, draft: turns.Draft | None) -> Scores:
    if draft is None:
        return Scores(
            quality=0,
            relevance=_round(turn.evidence.relevance),
            factuality=Factuality(value=100.0, status="skipped"),
            adequacy=_round(turn.evidence.adequacy),
            confidence=0.0,
            hallucination=0.0,
        )
    return Scores(
        quality=draft.quality,
        relevance=_round(draft.relevance),
        factuality=Factuality(value=_round(draft.factuality), status=draft.factuality_status),
        adequacy=_round(turn.evidence.adequacy),
        confidence=_round(draft.confidence),
        hallucination=_round(1.0 - draft.factuality / 100.0),
    )


def _meta(
    turn: turns.Turn,
    citations: tuple[turns.Citation, ...],
    steps: Mapping[str, float],
    latency_ms: float,
    calls: Sequence[Call],
) -> Meta:
    made = [call for call in calls if call.outcome not in NOT_MADE]
    costs = [call.cost_usd for call in made if call.cost_usd is not None]
    wrote = _writer(turn, made)
    return Meta(
        provider=wrote.provider if wrote else "local",
        model=wrote.model if wrote else "extractive",
        quality=turn.quality,
        cached=turn.evidence.cached,
        latency_ms=_round(latency_ms),
        latency_ms_by_step={name: _round(spent) for name, spent in steps.items()},
        llm_calls=len(made),
        tokens=_tokens(made),
        cost_usd=round(sum(costs), 8) if costs else None,
        chunks=ChunkCounts(
            retrieved=turn.evidence.retrieved,
            graded=len(turn.evidence.kept),
            used=len({citation.passage.chunk_id for citation in citations if citation.origin == "primary"}),
        ),
        # A refusal says nothing of what was found.
        beside=_beside(turn.evidence if turn.outcome in SHOWN else turns.Evidence()),
        filters=_filters(turn.filters),
        query=QueryPart(
            original=turn.question, search=turn.query.search, hyde=turn.query.hyde, recovery=turn.query.recovery
        ),
        degraded=tuple(dict.fromkeys((*turn.degraded, *_helped(calls)))),
        prompt_version=", ".join(dict.fromkeys(call.prompt for call in made)),
    )


def _writer(turn: turns.Turn, made: Sequence[Call]) -> Call | None:
    """The call that the answer came of; None for one that was quoted, and for a turn without."""
    if turn.outcome not in SHOWN or WRITING in turn.degraded:
        return None
    return next((call for call in reversed(made) if call.step == WRITING), None)


def _helped(calls: Sequence[Call]) -> Iterator[str]:
    """Steps that one model failed and another one served. Where none did, the step itself has said so."""
    served = {call.step for call in calls if call.outcome == "ok"}
    yield from (call.step for call in calls if call.outcome != "ok" and call.step in served)


def _tokens(made: Sequence[Call]) -> Mapping[str, int]:
    """By direction; empty where no model was called."""
    if not made:
        return {}
    prompt, completion = sum(call.prompt_tokens for call in made), sum(call.completion_tokens for call in made)
    return {"prompt": prompt, "completion": completion, "total": prompt + completion}


def _beside(evidence: turns.Evidence) -> BesidePart:
    return BesidePart(
        related=tuple(
            RelatedPart(
                doc_id=related.passage.doc_id,
                chunk_id=related.passage.chunk_id,
                kind=related.kind,
                weight=related.weight,
                from_doc=related.from_doc,
                to_doc=related.to_doc,
            )
            for related in evidence.related
        ),
        rejected=tuple(
            RejectedPart(rejected_id=approach.rejected_id, coverage=_round(approach.coverage))
            for approach in evidence.rejected
        ),
        conflicts=tuple(
            ConflictPart(kind=conflict.kind, trusted=conflict.trusted.chunk_id, other=conflict.other.chunk_id)
            for conflict in evidence.conflicts
        ),
    )


def _filters(filters: turns.Filters) -> Mapping[str, str | tuple[str, ...]]:
    given = {
        "project_keys": filters.project_keys,
        "tags": filters.tags,
        "source_types": filters.source_types,
        "evidence_tiers": filters.evidence_tiers,
        "statuses": filters.statuses,
        "doc_ids": filters.doc_ids,
        "date_from": filters.date_from,
        "date_to": filters.date_to,
    }
    return {name: value for name, value in given.items() if value is not None}


def _round(value: float) -> float:
    """Four digits: enough to compare, few enough to read."""
    return round(value, 4)
