"""The values that travel through the ask pipeline.

One immutable `Turn` walks from step to step; a step returns a changed copy (`dataclasses.replace`). Everything a loop
needs travels inside it, because Haystack delivers a value from outside a loop only once. Collections are tuples and
mappings are treated as read-only, so a Turn can be shared between components without copying.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
EdgeKind = Literal["depends_on", "implements", "decision_for", "related_to", "supersedes"]
ConflictKind = Literal["number", "date", "code", "negation"]
Origin = Literal["primary", "related", "conflicting"]
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
"""Passes after the first one that both loops together may spend, by `quality`, unless the pipeline says otherwise."""


class Frozen:
    """A value that never changes, so copying it is returning it: Haystack deep-copies what it hands to components."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __copy__(self) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Filters(Frozen):
    """Which passages may be retrieved. `None` leaves a field open; an empty tuple matches nothing.

    Dates are ISO 8601 days (`2026-01-31`), both ends inclusive, compared with a document's last update.
    """

    project_keys: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    source_types: tuple[str, ...] | None = None
    evidence_tiers: tuple[str, ...] | None = None
    statuses: tuple[DocumentStatus, ...] | None = None
    doc_ids: tuple[str, ...] | None = None
    date_from: str | None = None
    date_to: str | None = None


@dataclass(frozen=True, slots=True)
class Passage(Frozen):
    """One chunk of a document, as retrieved for this turn.

    `text` is the chunk's body, `sentences` those of its sentences that may be quoted, as (start, end) character offsets
    into `text`.
    `section` holds the first and the last `chunk_index` of the section that it is part of; None when it is all of it.
    `scores` holds every component of `score` by name, each in 0..1 unless its name says otherwise.
    """

    chunk_id: str
    doc_id: str
    title: str
    heading: str
    text: str
    sentences: tuple[tuple[int, int], ...]
    chunk_index: int = 0
    section: tuple[int, int] | None = None
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
class Exchange(Frozen):
    """An earlier turn of the conversation: its standalone question, its outcome, and the choices it offered.

    `reply` is what a person answered in the assistant's place.
    """

    question: str
    outcome: str
    options: tuple[str, ...] = ()
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Query(Frozen):
    """What is searched in this pass.

    `search` is the question as it was understood, and what is judged; `variants` are further texts to search for.
    `weights` maps each content stem of `search` to its inverse document frequency in the tenant's knowledge base;
    `doubtful` are stems that a typing-error repair put there. `searched_texts` are all texts searched so far, `hyde`
    whether one of them was a passage such as might answer, written by a model.
    """

    search: str
    variants: tuple[str, ...] = ()
    recovery: Recovery = "none"
    weights: Mapping[str, float] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    codes: tuple[str, ...] = ()
    searched_texts: tuple[str, ...] = ()
    hyde: bool = False


@dataclass(frozen=True, slots=True)
class Related(Frozen):
    """The best passage of a document that an edge ties to one of the evidence; context, never primary evidence.

    `kind` reads from `from_doc` to `to_doc`, one of which is the passage's document; `weight` is in 0..1.
    """

    passage: Passage
    kind: EdgeKind
    weight: float
    from_doc: str
    to_doc: str


@dataclass(frozen=True, slots=True)
class RejectedApproach(Frozen):
    """A way of doing things that the tenant has dismissed, and why; it is never proposed as an answer.

    `coverage` (0..1) is the share of the question that its text covers, `day` the ISO 8601 day of the decision.
    """

    rejected_id: str
    text: str
    reason: str
    day: str
    doc_id: str | None = None
    coverage: float = 0.0


@dataclass(frozen=True, slots=True)
class Statement(Frozen):
    """One sentence of a passage; `span` are character offsets into the passage's text."""

    chunk_id: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Conflict(Frozen):
    """Two documents that answer the question differently. `trusted` is the statement to go by, `other` the one not."""

    kind: ConflictKind
    trusted: Statement
    other: Statement


@dataclass(frozen=True, slots=True)
class Evidence(Frozen):
    """The passages retrieved so far, best first. Grows over passes and never shrinks.

    `relevance_by_chunk` maps chunk ids to the judge's probability that the passage answers the question; `relevance` is
    the highest of them. `relevant_ids` are the chunks that the grader accepted, ordered by `rank_scores`, which combine
    search score and judgement. `adequacy` (0..1) says how well they answer together, `uncovered` which stems of the
    question they leave open, `missing` which topics, in a model's words. `earlier_ids` are the chunks of earlier
    passes, which no later pass removes; `has_new` says whether the last pass added any. `related` and `rejected` are
    what else an answer should know of, most important first; `conflicts` are contradictions between accepted passages.
    These three are computed anew in every pass. `cached` says that every search was answered from the cache.
    """

    passages: tuple[Passage, ...] = ()
    relevance_by_chunk: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0
    relevant_ids: tuple[str, ...] = ()
    rank_scores: Mapping[str, float] = field(default_factory=dict)
    adequacy: float = 0.0
    uncovered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    earlier_ids: frozenset[str] = frozenset()
    has_new: bool = True
    cached: bool = False
    related: tuple[Related, ...] = ()
    rejected: tuple[RejectedApproach, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def retrieved(self) -> int:
        """How many passages were retrieved over all passes."""
        return len(self.passages)

    def reordered(self, rank_scores: Mapping[str, float]) -> "Evidence":
        """The evidence with these accepted passages, best first."""
        ids = tuple(sorted(rank_scores, key=lambda chunk_id: -rank_scores[chunk_id]))
        return replace(self, relevant_ids=ids, rank_scores=rank_scores)

    def relevant_passages(self) -> tuple[Passage, ...]:
        """The passages that the grader accepted, best first."""
        by_id = {passage.chunk_id: passage for passage in self.passages}
        return tuple(by_id[chunk_id] for chunk_id in self.relevant_ids)


@dataclass(frozen=True, slots=True)
class Citation(Frozen):
    """The passage behind one [N]. `span` is the quoted part as character offsets into the passage's text.

    `origin` says what it is to the answer: `primary` evidence, a `related` document to read beside it, or one that is
    `conflicting` with what the answer says.
    """

    index: int
    passage: Passage
    excerpt: str
    span: tuple[int, int]
    origin: Origin = "primary"


@dataclass(frozen=True, slots=True)
class Claim(Frozen):
    """One checkable statement of a draft with the citation indices it stands on and the quote that supports it."""

    text: str
    citations: tuple[int, ...]
    status: ClaimStatus = "unsupported"
    quote: str = ""


@dataclass(frozen=True, slots=True)
class SelfEvaluation(Frozen):
    """How good a draft is: `quality` 1..100, how far it answers, `confidence` 0..1, and what it leaves open."""

    quality: int
    answerability: Answerability
    confidence: float
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft(Frozen):
    """A candidate answer. `claims` are its sentences in order; `text` is what a reader sees, [N] included.

    `opening` is the yes or no, or the heading, that `text` begins with and no claim says: it goes where a claim is
    dropped.
    `truncated` says that a list continues in the source, `withheld` which rejected approaches were left out.
    `agreement` (0..1) is how far a second draft says the same, None when none was written. `evaluation` is what a model
    that verified the draft made of it as a whole at the same time, before claims were dropped; None without one.
    """

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
    truncated: bool = False
    agreement: float | None = None
    evaluation: SelfEvaluation | None = None
    withheld: tuple[RejectedApproach, ...] = ()
    opening: str = ""


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
class Article(Frozen):
    """A section to read where there is no answer: near the question, and proof of nothing.

    `snippet` is the sentence of the passage nearest to the question, `score` the judge's probability (0..1) that the
    section answers it.
    """

    passage: Passage
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Reply(Frozen):
    """What the visitor reads: texts already in the turn's locale, resolved from locale files or tenant policy."""

    text: str = ""
    notice: str | None = None
    clarification: tuple[str, ...] | None = None
    suggestions: tuple[str, ...] = ()
    handoff: Mapping[str, str] | None = None
    articles: tuple[Article, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn(Frozen):
    """One question on its way to one outcome.

    `passes` counts started retrieval passes, the one budget of both loops: at most `1 + extra_passes`, which the
    pipeline sets; None: `EXTRA_PASSES[quality]`. `best` is the best draft so far, in use when a later pass does worse.
    `outcome` is None until it is decided. `history` is the conversation so far, oldest first. `standalone_question` is
    a follow-up question completed from it, else empty; `history_stems` are the stems taken from there.
    """

    turn_id: str
    question: str
    locale: str = "ru"
    quality: Quality = "balanced"
    session_id: str = ""
    history: tuple[Exchange, ...] = ()
    standalone_question: str = ""
    history_stems: frozenset[str] = frozenset()
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
    extra_passes: int | None = None
    degraded: tuple[str, ...] = ()

    @property
    def max_passes(self) -> int:
        """The most retrieval passes this turn may make, the first one included."""
        return 1 + (EXTRA_PASSES[self.quality] if self.extra_passes is None else self.extra_passes)

    def degraded_at(self, step: str) -> "Turn":
        """The turn with a note that this step could not do its work."""
        return replace(self, degraded=tuple(dict.fromkeys((*self.degraded, step))))
