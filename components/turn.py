"""The values that travel through the ask pipeline.

One immutable `Turn` walks from step to step; a step returns a changed copy (`dataclasses.replace`). Everything a loop
needs travels inside it, because Haystack delivers a value from outside a loop only once. Collections are tuples and
mappings are treated as read-only, so a Turn can be shared between components without copying.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Self

Quality = Literal["quick", "balanced", "thorough"]
Intent = Literal["answerable", "nonsense", "irrelevant", "out_of_scope", "high_stakes", "wants_human", "chitchat"]
Risk = Literal["none", "cancellation", "billing_dispute", "complaint", "lost_access", "medical", "legal"]
Complexity = Literal["simple", "complex", "unknown"]
Recovery = Literal["none", "layout", "transliteration", "typo"]
Route = Literal["auto", "retry", "human", "error"]
ClaimStatus = Literal["supported", "partially_supported", "unsupported"]
FactualityStatus = Literal["checked", "no_claims", "skipped", "failed"]
Answerability = Literal["fully", "partially", "cannot", "unknown"]
Trust = Literal["accepted", "auto", "raw"]
DocumentStatus = Literal["active", "superseded", "deprecated", "archived"]
Outcome = Literal[
    "answered",
    "partially_answered",
    "low_confidence",
    "clarify",
    "refused",
    "cannot_answer",
    "human_followup",
    "high_stakes",
    "out_of_scope",
    "irrelevant",
    "nonsense",
    "blocked",
    "failed",
]
Reason = Literal[
    "no_relevant_context",
    "llm_self_refusal",
    "unverified_answer",
    "insufficient_context",
    "low_confidence",
    "high_risk",
    "user_request",
    "budget_exhausted",
    "out_of_scope",
    "off_topic",
    "no_intent",
    "blocked_by_guardrails",
    "pipeline_error",
    "timeout",
]

EXTRA_PASSES: Mapping[Quality, int] = MappingProxyType({"quick": 1, "balanced": 2, "thorough": 4})
"""Passes after the first one that both loops together may spend, by `quality`."""


class Frozen:
    """A value that never changes, so copying it is returning it: Haystack deep-copies what it hands to components."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __copy__(self) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Filters(Frozen):
    """Which passages may be found. `None` leaves a field open; an empty tuple matches nothing.

    Dates are ISO 8601 days (`2026-01-31`), both ends inclusive, compared with a document's last update.
    """

    project_keys: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    source_types: tuple[str, ...] | None = None
    evidence_tiers: tuple[str, ...] | None = None
    doc_ids: tuple[str, ...] | None = None
    date_from: str | None = None
    date_to: str | None = None


@dataclass(frozen=True, slots=True)
class Passage(Frozen):
    """One chunk of a document, as found for this turn.

    `text` is the chunk's body, `sentences` its sentence spans as (start, end) character offsets into `text`.
    `scores` holds every component of `score` by name, each in 0..1 unless its name says otherwise.
    """

    chunk_id: str
    doc_id: str
    title: str
    heading: str
    text: str
    sentences: tuple[tuple[int, int], ...]
    chunk_index: int = 0
    source: str = ""
    url: str | None = None
    lang: str = "ru"
    trust: Trust = "auto"
    status: DocumentStatus = "active"
    priority: int = 0
    updated_at: str = ""
    score: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query(Frozen):
    """What is searched in this pass.

    `weights` maps each content stem of the question to its inverse document frequency in the tenant's knowledge base;
    `missing` are the stems that no document holds. `tried` are all search texts of earlier passes.
    """

    search: str
    variants: tuple[str, ...] = ()
    recovery: Recovery = "none"
    weights: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence(Frozen):
    """The passages found so far, best first. Grows over passes and never shrinks.

    `kept` are the chunk ids that the grader let through; `adequacy` (0..1) says how well they cover the question;
    `retrieved` counts all passages seen; `grew` says whether the last pass brought any new one.
    """

    passages: tuple[Passage, ...] = ()
    kept: tuple[str, ...] = ()
    relevance: float = 0.0
    adequacy: float = 0.0
    uncovered: tuple[str, ...] = ()
    retrieved: int = 0
    grew: bool = True

    def usable(self) -> tuple[Passage, ...]:
        """The graded passages, best first."""
        kept = set(self.kept)
        return tuple(p for p in self.passages if p.chunk_id in kept)


@dataclass(frozen=True, slots=True)
class Citation(Frozen):
    """The passage behind one [N]. `span` is the quoted part as character offsets into the passage's text."""

    index: int
    passage: Passage
    excerpt: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Claim(Frozen):
    """One checkable statement of a draft with the citation indices it stands on and the quote that supports it."""

    text: str
    citations: tuple[int, ...]
    status: ClaimStatus = "unsupported"
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Draft(Frozen):
    """A candidate answer. `claims` are its sentences in order; `text` is what a reader sees, [N] included."""

    text: str
    claims: tuple[Claim, ...]
    citations: tuple[Citation, ...]
    missing: tuple[str, ...] = ()
    factuality: float = 100.0
    factuality_status: FactualityStatus = "skipped"
    quality: int = 0
    relevance: float = 0.0
    confidence: float = 0.0
    answerability: Answerability = "unknown"


@dataclass(frozen=True, slots=True)
class Gate(Frozen):
    """One threshold and whether this turn passed it."""

    name: str
    passed: bool
    score: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Verdict(Frozen):
    """Where the turn goes and why. `reasons` are stable ASCII words for traces and operators."""

    route: Route = "auto"
    reasons: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply(Frozen):
    """What the visitor is told: texts already in the turn's locale, resolved from locale files or tenant policy."""

    text: str = ""
    notice: str | None = None
    clarification: tuple[str, ...] | None = None
    suggestions: tuple[str, ...] = ()
    handoff: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Turn(Frozen):
    """One question on its way to one outcome.

    `passes` counts started retrieval passes, the one budget of both loops: at most `1 + EXTRA_PASSES[quality]`.
    `best` is the best draft so far, kept when a later pass does worse. `outcome` is None until it is decided.
    """

    turn_id: str
    question: str
    locale: str = "ru"
    quality: Quality = "balanced"
    session_id: str = ""
    filters: Filters = Filters()
    intent: Intent = "answerable"
    risk: Risk = "none"
    complexity: Complexity = "unknown"
    query: Query = Query("")
    evidence: Evidence = Evidence()
    draft: Draft | None = None
    best: Draft | None = None
    verdict: Verdict = Verdict()
    outcome: Outcome | None = None
    reason: Reason | None = None
    reply: Reply = Reply()
    passes: int = 0
    degraded: tuple[str, ...] = ()

    @property
    def max_passes(self) -> int:
        """The most retrieval passes this turn may make, the first one included."""
        return 1 + EXTRA_PASSES[self.quality]
