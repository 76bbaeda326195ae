"""What is asked and what came back: the values that evaluation counts with."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from components.ingest.document import SourceDocument
from components.models.calls import CallOutcome

Answerable: TypeAlias = Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A passage and how far it answers a question: 2 answers it, 1 a real part of it, 0 not. Others are unlabelled."""

    doc_id: str
    title: str
    heading: str
    text: str
    grade: int


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What a right answer to a question is: the passages that give it and the facts that it holds.

    `kind` is the kind of the question, such as `howto`. A key without `facts` is satisfied by a right passage alone.
    """

    kind: str
    answerable: Answerable
    facts: tuple[str, ...]
    passages: tuple[LabelledPassage, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One question and what is known about its right answer.

    `answerable` is None when nobody knows whether the knowledge base holds the answer. `gold_docs` are the articles
    that answer it, `gold_spans` equally good wordings of the answer. `outcome` and `reason` are what a fixture demands,
    `must_contain` and `must_not_contain` what it demands of the shown text, `intents` the intents that are right.
    `history` is what the visitor asked before in the same conversation, oldest first. `sealed` cases are left out of
    everything that is tuned.
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
    """One tenant's knowledge base. `documents` is called when it has to be indexed."""

    name: str
    locale: str
    documents: Callable[[], Iterator[SourceDocument]]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions put to one knowledge base."""

    name: str
    corpus: Corpus
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A passage, a claim, and whether people say that the passage supports it."""

    pair_id: str
    passage: str
    claim: str
    supported: bool


@dataclass(frozen=True, slots=True)
class PairSet:
    """Claims to verify against a passage each; no knowledge base."""

    name: str
    locale: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """One [N]: the quoted text, the document it is from, and whether it is in the passage word for word."""

    doc_id: str
    excerpt: str
    genuine: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer, without its [N], and the quotes it stands on."""

    text: str
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage that the turn judged, with the scores of search and judge, each 0..1."""

    doc_id: str
    title: str
    heading: str
    text: str
    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class Page:
    """The whole passage behind a citation."""

    doc_id: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A section that was offered to read where there is no answer; `score` is the probability that it answers."""

    doc_id: str
    title: str
    heading: str
    url: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Record:
    """One asked question. `ranked` are document ids, best first, each once; `passages` the best of what was judged;
    `codes` the identifiers in the question as it was understood.

    `score` is the relevance that the gate measured and `confidence` that the shown answer is right, both 0..1.
    `checked` says that every claim shown was checked and found supported, `factuality` which percentage of the drafted
    ones was. `steps` are milliseconds by pipeline step, `passes` retrieval passes, `calls` calls of a language model.
    `trace_id` is empty where nothing was traced. `judged` is by figure what a judge's models said, -1..1, or how asking
    them failed. Of a case that names its articles, `cited` are the passages that the answer cites and `offered` the
    sections that were offered to read; `draft`, with an answer key only, is the drafted answer, shown or not.
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
    factuality: float = 0.0
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

    @property
    def shown(self) -> bool:
        """Whether the visitor was shown an answer, with or without a warning above it."""
        return self.outcome in ANSWERS


@dataclass(frozen=True, slots=True)
class PairRecord:
    """One verified claim: whether the pipeline let it through, and how far the passage supports it, 0..1."""

    pair: Pair
    let_through: bool
    score: float
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A set that could not be measured here, and the file that is not there."""

    name: str
    path: Path


ANSWERS = frozenset({"answered", "partially_answered"})
"""The outcomes that show an answer."""
