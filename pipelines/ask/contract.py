"""The input and output of a turn: the request, and the answer object `turn.v1`.

Every key of the answer is always present, null or empty, so clients never have to test for it.
"""

from collections.abc import Mapping
from datetime import date, datetime
from functools import cached_property
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from components import turn as turns
from pipelines.ask.staffing import Staffing
from tenants.chats import mail
from tenants.core.validation import FrozenModel

QUESTION_LIMIT = 2_000
LOCALE_FORM = r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"
_Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Keys = Annotated[tuple[_Key, ...], Field(max_length=100, fail_fast=True)]


def _trimmed(words: str) -> str:
    # NUL is legal in JSON but not in database text columns.
    words = words.replace("\x00", " ").strip()
    if len(words) > QUESTION_LIMIT:
        raise ValueError("question_too_long")
    return words


def _not_empty(words: str) -> str:
    if not words:
        raise ValueError("question_empty")
    return words


Words = Annotated[str, AfterValidator(_trimmed)]
"""Text of a customer; may be empty."""
Question = Annotated[Words, AfterValidator(_not_empty)]


class AskFilters(FrozenModel):
    """Restricts which passages can be retrieved. An omitted field does not restrict; an empty list matches nothing."""

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
    def _wrap_project_key(cls, raw: object) -> object:
        if not isinstance(raw, dict) or "project_key" not in raw or "project_keys" in raw:
            return raw
        rest = {name: value for name, value in raw.items() if name != "project_key"}
        return {**rest, "project_keys": [raw["project_key"]]}

    @field_validator("date_from", "date_to")
    @classmethod
    def _check_day(cls, value: str | None) -> str | None:
        return None if value is None else date.fromisoformat(value).isoformat()

    def to_turn(self) -> turns.Filters:
        return turns.Filters(**self.model_dump())


def _check_contact(given: str) -> str:
    if not mail.is_contact(given):
        raise ValueError("contact_invalid")
    return given


Contact = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(_check_contact)]


class AskRequest(FrozenModel):
    """A question. The tenant is not a field: it comes only from the token."""

    question: Question
    session_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:~-]{1,128}$")] | None = None
    locale: Annotated[str, StringConstraints(pattern=LOCALE_FORM)] | None = None
    quality: turns.Quality = "balanced"
    filters: AskFilters | None = None
    anonymous: StrictBool = False
    context: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = Field(
        None, description="Product or page that the customer is viewing; resolves questions that name no product."
    )
    contact: Contact | None = Field(
        None, description="How a member of staff can reach the customer: an e-mail address or a phone number."
    )

    @field_validator("contact")
    @classmethod
    def _check_anonymity(cls, value: str | None, about: ValidationInfo) -> str | None:
        if value is not None and about.data.get("anonymous"):
            raise ValueError("contact_of_nobody")
        return value


Rounded = Annotated[float, AfterValidator(lambda value: round(value, 4))]
"""Four digits: enough to compare, few enough to read."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class GateResult(_Part):
    name: str
    passed: bool
    score: Rounded
    threshold: float


class VerdictPart(_Part):
    route: turns.Route
    reasons: tuple[str, ...]
    iterations: int
    max_iterations: int
    gates: tuple[GateResult, ...]


class AnswerPart(_Part):
    """`notice` is shown above `text`. `missing` lists the topics that a partial answer leaves open."""

    text: str
    notice: str | None
    verified: bool
    missing: tuple[str, ...]


class RelatedPart(_Part):
    """A document linked to the evidence by an edge. `kind` reads from `from_doc` to `to_doc`."""

    doc_id: str = Field(validation_alias=AliasChoices("doc_id", AliasPath("passage", "doc_id")))
    chunk_id: str = Field(validation_alias=AliasChoices("chunk_id", AliasPath("passage", "chunk_id")))
    kind: turns.EdgeKind
    weight: float
    from_doc: str
    to_doc: str


class RejectedPart(_Part):
    """A rejected approach that the question is close to; only operators can look up its text."""

    rejected_id: str
    coverage: Rounded


class ConflictPart(_Part):
    """Two passages that answer the question differently; `trusted` is the chunk to go by."""

    kind: turns.ConflictKind
    trusted: str = Field(validation_alias=AliasChoices(AliasPath("trusted", "passage", "chunk_id"), "trusted"))
    other: str = Field(validation_alias=AliasChoices(AliasPath("other", "passage", "chunk_id"), "other"))


class BesidePart(_Part):
    """Further input of the answering step besides its evidence."""

    related: tuple[RelatedPart, ...]
    rejected: tuple[RejectedPart, ...]
    conflicts: tuple[ConflictPart, ...]


class CitationPart(_Part):
    """The passage behind one [N]; `span` is where `excerpt` lies in the passage, in characters.

    A passage of several chunks of one section goes by the id of the first.
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
    score: Rounded
    updated_at: str


class SectionPart(_Part):
    heading: str
    url: str


class ArticlePart(_Part):
    """A section to read when there is no answer.

    `snippet` is its sentence closest to the question, `text` all of it, as far as a card shows it. `sections` are up to
    six other sections of the same article, where a help centre shows it.
    """

    doc_id: str
    title: str
    heading: str
    url: str | None
    snippet: str
    score: Rounded
    # Answers recorded before have none.
    text: str = ""
    sections: tuple[SectionPart, ...] = ()


class SourcePart(_Part):
    """The older, flat form of a citation."""

    source: str
    page_content: str
    snippet: str
    score: Rounded


class ClaimPart(_Part):
    text: str
    status: turns.ClaimStatus
    citations: tuple[int, ...]
    quote: str


class Factuality(_Part):
    """`value` is the percentage of supported claims; `status` says whether anything was checked."""

    value: Rounded
    status: turns.FactualityStatus


class Scores(_Part):
    quality: int
    relevance: Rounded
    factuality: Factuality
    adequacy: Rounded
    confidence: Rounded
    hallucination: Rounded


class Routing(_Part):
    intent: turns.Intent
    risk: turns.Risk
    complexity: turns.Complexity


class Clarification(_Part):
    """The near-miss topics to choose from."""

    options: tuple[str, ...]


class Handoff(_Part):
    """The way to a person. `open`: a ticket exists; `offered`: one can be asked for; `failed`: none could be opened.

    `reachable` is false if the request had no contact, so operators cannot answer the customer.
    """

    status: Literal["open", "offered", "failed"]
    ticket_id: str | None = None
    channel: str | None = None
    created_at: datetime | None = None
    offer: str | None = None
    staffing: Staffing | None = None
    reachable: bool = True


class ChunkCounts(_Part):
    retrieved: int
    graded: int
    used: int


class QueryPart(_Part):
    original: str
    search: str
    hyde: bool
    recovery: turns.Recovery


class RetrieverPart(_Part):
    """The search of a pass: documents found, and how many of them by words and by meaning.

    `cached`: no query was searched anew.
    """

    took_ms: float
    found: int
    by_words: int
    by_meaning: int
    best_score: float
    cached: bool


class IterationPart(_Part):
    """A retrieval pass: documents graded and accepted, the claims of its draft, and where it leads.

    `took_ms` is wall-clock time from the search to the decision. What a pass did not come to is null or 0.
    """

    iteration: int
    took_ms: float
    retriever: RetrieverPart
    graded: int = 0
    accepted: int = 0
    relevance: float = 0.0
    adequacy: float = 0.0
    claims: int = 0
    factuality: float | None = None
    quality: int | None = None
    route: turns.Route | None = None
    reasons: tuple[str, ...] = ()


class Meta(_Part):
    """Details of how the answer was produced. Times are wall-clock milliseconds."""

    provider: str
    model: str
    quality: turns.Quality
    cached: bool
    latency_ms: Rounded
    latency_ms_by_step: Mapping[str, Rounded]
    # Answers recorded before have none.
    iterations: tuple[IterationPart, ...] = ()
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

    model_config = ConfigDict(serialize_by_alias=True)

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
    # Answers recorded before articles existed have none.
    articles: tuple[ArticlePart, ...] = ()
    suggested_questions: tuple[str, ...]
    clarification: Clarification | None
    handoff: Handoff | None
    meta: Meta

    @cached_property
    def encoded(self) -> str:
        """Return the object as JSON text, encoded once for both the visitor and the audit."""
        return self.model_dump_json()
