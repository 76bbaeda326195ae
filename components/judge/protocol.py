"""What every judge can do, whatever engine thinks inside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from components.language.vocabulary import Vocabulary
from components.turn import Answerability, ClaimStatus, Draft, Passage, Query


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """Whether a passage supports a claim: `score` 0..1, and the words of the passage that do."""

    status: ClaimStatus
    score: float
    quote: str


@dataclass(frozen=True, slots=True)
class SelfEvaluation:
    """How good a draft is: `quality` 1..100, how far it answers, `confidence` 0..1, and what it leaves open."""

    quality: int
    answerability: Answerability
    confidence: float
    missing: tuple[str, ...]


class Judge(Protocol):
    """Judgements a pipeline needs. A pipeline author names the implementation in YAML as a nested component."""

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The probability, by chunk id, that each passage answers the question."""

    def ceiling(self, query: Query, vocabulary: Vocabulary) -> float:
        """The most relevance that any passage of a knowledge base with these words can have; 1 when nobody can tell."""

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        """The stems of the question that none of the passages holds, weightiest first."""

    def check(self, claim: str, passage: Passage) -> ClaimVerdict:
        """Whether the passage supports the claim."""

    def evaluate(self, query: Query, draft: Draft, relevance: float) -> SelfEvaluation:
        """How well the draft answers the question, given the relevance of the evidence it stands on."""
