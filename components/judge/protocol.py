"""The protocols of judges, whatever engine implements them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from components.turn import ClaimStatus, Draft, Passage, Query, SelfEvaluation, Turn


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim with the passages it cites, by their [N]; those that do not resolve are left out."""

    text: str
    passages: Mapping[int, Passage]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """Whether what a claim cites supports it: `score` 0..1, and the words of the passage that do."""

    status: ClaimStatus
    score: float
    quote: str


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What a judge makes of passages together: the chunk ids that answer, how far (0..1), and what they leave open.

    `missing` are topics in the judge's own words.
    """

    answering: frozenset[str]
    adequacy: float
    missing: tuple[str, ...]


class Appraiser(Protocol):
    """Who looks at all evidence at once."""

    def appraise(self, turn: Turn, passages: Sequence[Passage]) -> Appraisal:
        """Every passage graded, and all of them together."""


class Reviewer(Protocol):
    """Who looks at a draft. A pipeline author names the implementation in YAML as a nested component."""

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        """A verdict for each claim, in their order."""

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        """How well the draft answers the question, given the adequacy of the evidence it stands on."""


class Judge(Reviewer, Protocol):
    """All judgements that the loop needs at every step, fast enough to need no waiting."""

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The probability, by chunk id, that each passage answers the question."""

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        """The stems of the question that none of the passages holds, weightiest first."""
