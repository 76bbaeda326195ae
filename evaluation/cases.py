"""What is asked and what came back: the values that evaluation counts with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from components.ingest.document import SourceDocument


@dataclass(frozen=True, slots=True)
class Case:
    """One question and what is known about its right answer.

    `answerable` is None when nobody knows whether the knowledge base holds the answer. `gold_docs` are the articles
    that answer it, `gold_spans` equally good wordings of the answer. `outcome` and `reason` are what a fixture demands,
    `must_contain` and `must_not_contain` what it demands of the shown text.
    """

    case_id: str
    question: str
    locale: str = "ru"
    answerable: bool | None = None
    gold_docs: tuple[str, ...] = ()
    gold_spans: tuple[str, ...] = ()
    category: str = ""
    outcome: str = ""
    reason: str = ""
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()


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
class Record:
    """One asked question. `ranked` are document ids, best first, each once; `score` is what the gate measured."""

    case: Case
    outcome: str
    reason: str = ""
    ranked: tuple[str, ...] = ()
    text: str = ""
    sentences: tuple[Sentence, ...] = ()
    score: float = 0.0
    milliseconds: float = 0.0

    @property
    def shown(self) -> bool:
        """Whether the visitor was shown an answer, with or without a warning above it."""
        return self.outcome in ANSWERS


ANSWERS = frozenset({"answered", "partially_answered", "low_confidence"})
"""The outcomes that show an answer. A hedged one counts too: a wrong answer under a warning is still wrong."""
