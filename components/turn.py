"""The values of a turn that Haystack has no type for, and `Turn`, the record of a finished question.

Sockets of the ask pipeline carry Haystack's own types: `query`, `documents`, `answers`. A `Passage` is the typed view
of a document; a `Draft` is that of an answer. `OutcomeComposer` collects all of it in one `Turn` at the end.
Collections are tuples and mappings are treated as read-only, so values can be shared between components.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Self

Quality = Literal["quick", "balanced", "thorough"]
Intent = Literal["answerable", "nonsense", "irrelevant", "out_of_scope", "high_stakes", "wants_human", "chitchat"]
Risk = Literal["none", "cancellation", "billing_dispute", "complaint", "lost_access", "medical", "danger", "legal"]
Complexity = Literal["simple", "complex", "unknown"]
Recovery = Literal["none", "layout", "transliteration", "typo"]
Route = Literal["auto", "retry", "human", "error"]
ClaimStatus = Literal["supported", "partially_supported", "unsupported"]
FactualityStatus = Literal["checked", "no_claims", "skipped", "failed"]
Answerability = Literal["fully", "partially", "cannot", "unknown"]
Trust = Literal["curated", "accepted", "auto", "raw"]
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
SHOWN: frozenset[Outcome] = frozenset({"answered", "partially_answered"})
"""Outcomes whose draft a visitor may read. Any other draft is for operators only."""
UNANSWERED: frozenset[Outcome | None] = frozenset({"refused", "cannot_answer", "low_confidence"})
"""Outcomes that leave a question without an answer. Articles beside them are no answer."""

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

PASSES: Mapping[Quality, int] = MappingProxyType({"quick": 1, "balanced": 2, "thorough": 4})
"""Retrieval passes that a turn may make, by `quality`, unless the pipeline says otherwise."""


class Frozen:
    """A value that never changes, so copying it is returning it: Haystack deep-copies what it hands to components."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __copy__(self) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Filters(Frozen):
    """Filters for retrieval. `None` leaves a field open; an empty tuple matches nothing.

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
    """A chunk of a document, retrieved for this turn.

    `text` is the chunk's body, `sentences` those of its sentences that may be quoted, as (start, end) character offsets
    into `text`.
    `section` holds the first and the last `chunk_index` of the section that it is part of; None when it is all of it.
    `begins_earlier` and `continues` say that the section has text before or after it that did not fit. `gap` is the
    offset into `text` where some in between is left out; 0 if none is.
    `place` is the path or id of its document if another one found for the turn has the same title.
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
    begins_earlier: bool = False
    continues: bool = False
    gap: int = 0
    place: str = ""
    source: str = ""
    url: str | None = None
    lang: str = "ru"
    trust: Trust = "auto"
    status: DocumentStatus = "active"
    priority: int = 0
    updated_at: str = ""
    score: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Whether a part of the section is left out."""
        return self.begins_earlier or self.continues or self.gap > 0


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
    """A search query as the judge reads it.

    `search` is the standalone question, `variants` are further texts that were searched. `weights` maps each content
    stem of `search` to its inverse document frequency in the tenant's knowledge base. `recovery` says how the typed
    question was repaired, `hyde` whether a hypothetical passage was searched.
    """

    search: str
    variants: tuple[str, ...] = ()
    recovery: Recovery = "none"
    weights: Mapping[str, float] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
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
    """A sentence of a passage; `span` holds character offsets into the passage's text."""

    passage: Passage
    span: tuple[int, int]

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.passage.text[slice(*self.span)]


@dataclass(frozen=True, slots=True)
class Conflict(Frozen):
    """Two documents that contradict each other. `trusted` is the statement to follow, `other` the other one."""

    kind: ConflictKind
    trusted: Statement
    other: Statement


@dataclass(frozen=True, slots=True)
class Evidence(Frozen):
    """The passages retrieved for a turn, best first.

    `relevance_by_chunk` maps chunk ids to the judge's probability that the passage answers the question; `relevance` is
    the highest of them. `relevant_ids` are the chunks that the grader accepted. `adequacy` (0..1) says how well they
    answer together, `uncovered` which words of the question they leave open. `related`, `rejected` and `conflicts` are
    what else an answer should know of, most important first. `cached` says that every search came from the cache.
    """

    passages: tuple[Passage, ...] = ()
    relevance_by_chunk: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0
    relevant_ids: tuple[str, ...] = ()
    adequacy: float = 0.0
    uncovered: tuple[str, ...] = ()
    cached: bool = False
    related: tuple[Related, ...] = ()
    rejected: tuple[RejectedApproach, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def retrieved(self) -> int:
        """Return the number of passages retrieved in all passes."""
        return len(self.passages)

    def relevant_passages(self) -> tuple[Passage, ...]:
        """Return the passages that the grader accepted, best first."""
        by_id = {passage.chunk_id: passage for passage in self.passages}
        return tuple(by_id[chunk_id] for chunk_id in self.relevant_ids)


@dataclass(frozen=True, slots=True)
class Citation(Frozen):
    """The passage behind one [N]. `span` is the quoted part as character offsets into the passage's text.

    `origin` is the role of the passage: `primary` evidence, a `related` document to read next, or `conflicting` with
    the answer.
    """

    index: int
    passage: Passage
    excerpt: str
    span: tuple[int, int]
    origin: Origin = "primary"


@dataclass(frozen=True, slots=True)
class Claim(Frozen):
    """A checkable statement of a draft with the citation indices it rests on and the quote that supports it.

    `gap` precedes the statement in the answer's text: a space, or a line break and perhaps a bullet.
    """

    text: str
    citations: tuple[int, ...]
    status: ClaimStatus = "unsupported"
    quote: str = ""
    gap: str = " "


@dataclass(frozen=True, slots=True)
class SelfEvaluation(Frozen):
    """Evaluation of a draft: `quality` 1..100, answerability, `relevance` and `confidence` 0..1, open points.

    `confidence` is the probability that a reader would call the draft an answer.
    """

    quality: int
    answerability: Answerability
    relevance: float
    confidence: float
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft(Frozen):
    """A candidate answer. `claims` are its sentences in order; `text` is what a reader sees, [N] included.

    `missing` are open parts of the question, `options` the things to choose from when the question fits several.
    `truncated` means that the source has more of a list or a procedure; `withheld` lists omitted rejected approaches.
    `quoted` means that the text is copied from the sources. `agreement` (0..1) is that with other drafts, None without
    any. `model` is the model in the metadata of an answer that a stock component wrote. `to_read` are the passages, by
    chunk id, that a model without an answer would send the customer to, best first; None if no model chose. The scores
    are those of `SelfEvaluation`, set once the draft has been evaluated.
    """

    text: str
    claims: tuple[Claim, ...]
    citations: tuple[Citation, ...]
    missing: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    quoted: bool = False
    factuality: float = 100.0
    factuality_status: FactualityStatus = "skipped"
    quality: int = 0
    relevance: float = 0.0
    confidence: float = 0.0
    answerability: Answerability = "unknown"
    truncated: bool = False
    agreement: float | None = None
    withheld: tuple[RejectedApproach, ...] = ()
    model: str = ""
    to_read: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Gate(Frozen):
    """A threshold and whether this turn passed it."""

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
    """Texts for the visitor, in the turn's locale, resolved from locale files or tenant policy."""

    text: str = ""
    notice: str | None = None
    clarification: tuple[str, ...] | None = None
    suggestions: tuple[str, ...] = ()
    handoff: Mapping[str, str] | None = None
    articles: tuple[Article, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn(Frozen):
    """A question and the state of its processing by the pipeline.

    `passes` counts retrieval passes, limited by `max_passes`. `outcome` is None until it is decided.
    `history` is the conversation so far, oldest first. `context` names the product or page that the customer looks at.
    `standalone_question` is a follow-up question completed from the history, else empty. `degraded` names the steps
    that could not do their work. `filtered` are the questions of the message that no document can answer, among those
    that the answer leaves open.
    """

    turn_id: str
    question: str
    locale: str = "ru"
    quality: Quality = "balanced"
    session_id: str = ""
    history: tuple[Exchange, ...] = ()
    context: str = ""
    standalone_question: str = ""
    filters: Filters = Filters()
    intent: Intent = "answerable"
    risk: Risk = "none"
    complexity: Complexity = "unknown"
    query: Query = Query("")
    evidence: Evidence = Evidence()
    draft: Draft | None = None
    verdict: Verdict = Verdict()
    outcome: Outcome | None = None
    reason: Reason | None = None
    reply: Reply = Reply()
    passes: int = 0
    max_passes: int = 1
    degraded: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()

    @property
    def rejected(self) -> tuple[RejectedApproach, ...]:
        """Return the rejected approaches close to the question, and those that were left out of the draft."""
        return (*self.evidence.rejected, *(self.draft.withheld if self.draft else ()))
