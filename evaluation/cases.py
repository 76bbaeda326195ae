"""Data types of evaluation: cases, answer keys and records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from components.ingest.document import SourceDocument
from components.models.calls import CallOutcome
from components.turn import SHOWN

Answerable: TypeAlias = Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole passage, such as the one behind a citation."""

    doc_id: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class LabelledPassage(Page):
    """A passage and how far it answers a question: 2 answers it, 1 a real part of it, 0 not. Others are unlabelled."""

    grade: int


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Answer key of a question: passages with the answer, and its facts.

    `kind` is the kind of question, such as `howto`. A key without `facts` only requires a right passage.
    """

    kind: str
    answerable: Answerable
    facts: tuple[str, ...]
    passages: tuple[LabelledPassage, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the known properties of its right answer.

    `answerable` is None if it is unknown whether the knowledge base has the answer. `gold_docs` are the articles that
    answer it, `gold_spans` equally good wordings of the answer. `outcome` and `reason` are required by a fixture,
    `must_contain` and `must_not_contain` its requirements on the visible text, `intents` the acceptable intents.
    `history` holds the visitor's earlier questions in the same conversation, oldest first. `sealed` cases are never
    used for tuning.
    """

    case_id: str
    question: str
    locale: str = "ru"
    answerable: bool | None = None
    gold_docs: tuple[str, ...] = ()
    gold_spans: tuple[str, ...] = ()
    gold_answer: str = ""
    category: str = ""
    outcome: str = ""
    reason: str = ""
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    vertical: str = ""
    sealed: bool = False
    key: AnswerKey | None = None

    @property
    def demands(self) -> bool:
        """Whether the case says how it has to end, so that it is passed or failed on its own."""
        return bool(self.outcome or self.must_contain or self.must_not_contain)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A tenant's knowledge base. `documents` is called when it has to be indexed."""

    name: str
    locale: str
    documents: Callable[[], Iterator[SourceDocument]]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    corpus: Corpus
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote behind an [N]: its text, its document, and whether the passage contains it word for word."""

    doc_id: str
    excerpt: str
    genuine: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer, without its [N], and its supporting quotes."""

    text: str
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class RankedPassage(Page):
    """A passage that the turn judged, with the scores of search and judge, each 0..1."""

    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class Offer:
    """A section offered instead of an answer; `score` is the probability that it answers the question."""

    doc_id: str
    title: str
    heading: str
    url: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Record:
    """An asked question. `ranked` are document ids, best first, without duplicates; `passages` the best judged
    passages; `codes` the identifiers in the understood question.

    `score` is the relevance measured by the gate and `confidence` the estimate that the visible answer is right, both
    0..1. `checked` says that every visible claim was checked and found supported. `steps` are milliseconds by pipeline
    step, `passes` retrieval passes, `calls` calls of a language model. `trace_id` is empty without tracing. `judged`
    maps figures of added evaluators to scores, or to the kind of failure. For a case that names its articles, `cited`
    are the passages cited by the answer and `offered` the sections offered to read; `draft`, with an answer key only,
    is the drafted answer, shown or not. `offers_articles`, for all cases, says that sections to read were offered
    instead of an answer.
    """

    case: Case
    outcome: str
    reason: str = ""
    intent: str = ""
    codes: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    text: str = ""
    sentences: tuple[Sentence, ...] = ()
    passages: tuple[RankedPassage, ...] = ()
    score: float = 0.0
    confidence: float = 0.0
    checked: bool = False
    passes: int = 0
    calls: int = 0
    tokens: int = 0
    degraded: tuple[str, ...] = ()
    steps: Mapping[str, float] = field(default_factory=dict)
    milliseconds: float = 0.0
    trace_id: str = ""
    judged: Mapping[str, float | CallOutcome] = field(default_factory=dict)
    draft: str = ""
    cited: tuple[Page, ...] = ()
    offered: tuple[Offer, ...] = ()
    offers_articles: bool = False

    @property
    def shown(self) -> bool:
        """Whether the visitor was shown an answer, with or without a warning above it."""
        return self.outcome in SHOWN


@dataclass(frozen=True, slots=True)
class Skipped:
    """A set that could not be measured here, and the missing file."""

    name: str
    path: Path
