"""Passages, queries and turns as the ask pipeline's steps see them, made short for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from components.judge.protocol import Cited, ClaimVerdict

from components.language.identifiers import codes
from components.language.sentences import sentence_spans
from components.language.words import stems
from components.turn import Draft, Evidence, Passage, Query, SelfEvaluation, Turn


def passage(text: str, chunk_id: str = "c1", *, doc_id: str = "", heading: str = "", title: str = "") -> Passage:
    """A passage of its own document unless one is named, cut into sentences as ingest does, found with score 0.9."""
    return Passage(
        chunk_id=chunk_id,
        doc_id=doc_id or f"document of {chunk_id}",
        title=title,
        heading=heading,
        text=text,
        sentences=sentence_spans(text),
        score=0.9,
        scores={"text-sparse": 1.0, "lexical": 0.8},
    )


def query(text: str) -> Query:
    """The query of a question whose words are all equally rare."""
    return Query(text, weights=dict.fromkeys(stems(text), 1.0), codes=codes(text), searched_texts=(text,))


def turn(question: str, *passages: Passage, relevance: float = 0.9) -> Turn:
    """A turn in its first pass whose passages were all judged with `relevance` and kept in this order."""
    ids = tuple(passage.chunk_id for passage in passages)
    places = {passage.chunk_id: passage.score for passage in passages}
    evidence = Evidence(passages, dict.fromkeys(ids, relevance), relevance, ids, places, adequacy=relevance)
    return Turn("t", question, query=query(question), evidence=evidence, passes=1)


def searched(question: str, *passages: Passage) -> Turn:
    """A turn in its first pass whose passages nobody has judged yet."""
    base = turn(question)
    return replace(base, evidence=Evidence(passages))


class FixedJudge:
    """Judges as it is told: relevance by chunk id (0 for others), claims by their text (supported unless named)."""

    def __init__(
        self,
        relevances: Mapping[str, float] | None = None,
        unsupported: Sequence[str] = (),
        evaluation: SelfEvaluation = SelfEvaluation(95, "fully", 0.9, ()),  # noqa: B008 - frozen
    ) -> None:
        self.relevances = relevances or {}
        self.unsupported = unsupported
        self.evaluation = evaluation
        self.asked: list[str] = []

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        self.asked.extend(passage.chunk_id for passage in passages)
        return {passage.chunk_id: self.relevances.get(passage.chunk_id, 0.0) for passage in passages}

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        return ()

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        return [
            ClaimVerdict("supported", 1.0, claim.text)
            if claim.passages and claim.text not in self.unsupported
            else ClaimVerdict("unsupported", 0.1, "")
            for claim in claims
        ]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        return self.evaluation


class BrokenJudge(FixedJudge):
    """A judge whose methods named in `broken` raise."""

    def __init__(self, *broken: str, relevances: Mapping[str, float] | None = None) -> None:
        FixedJudge.__init__(self, relevances)
        self.broken = broken

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        self._raise_if_broken("relevance")
        return FixedJudge.relevance(self, query, passages)

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        self._raise_if_broken("uncovered")
        return ()

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        self._raise_if_broken("check_all")
        return FixedJudge.check_all(self, turn, claims)

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        self._raise_if_broken("evaluate")
        return FixedJudge.evaluate(self, turn, draft)

    def _raise_if_broken(self, method: str) -> None:
        if method in self.broken:
            raise RuntimeError(f"the provider's own words about {method}")
