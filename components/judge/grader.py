"""Passage by passage: is this evidence for the question?"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.protocol import Judge
from components.turn import Gate, Passage, Turn, Verdict


@component
class DocGrader:
    """Grades the best passages YES or NO in one call of the judge and orders the YES ones.

    All NO means no evidence. The best search hit is accepted whenever another passage is, even if it was graded NO
    itself. When the judge fails, the turn is marked degraded and the best passages are all accepted, but relevance
    stays what earlier passes measured. A turn left without a draft then ends as `failed`, because nobody may claim that
    the knowledge base has no answer.

    :param judge: who grades.
    :param depth: passages graded, best first.
    :param threshold: least relevance for YES.
    :param search_share: share of the search score, relative to the judge's, in the rank of the accepted passages.
    :param promising: least relevance from which sources are shown before a model has appraised them; None: they wait
        for the evaluation of the evidence, as they should when that takes no time.
    """

    def __init__(
        self,
        judge: Judge,
        depth: int = 8,
        threshold: float = 0.2,
        search_share: float = 0.75,
        promising: float | None = None,
    ) -> None:
        self.judge = judge
        self.depth = depth
        self.threshold = threshold
        self.search_share = search_share
        self.promising = promising

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its evidence judged and graded."""
        evidence = turn.evidence
        known, candidates = evidence.relevance_by_chunk, evidence.passages[: self.depth]
        new = [passage for passage in candidates if passage.chunk_id not in known]
        try:
            judged = {**known, **self.judge.relevance(turn.query, new)}
        except Exception as error:
            ids = tuple(passage.chunk_id for passage in candidates)
            ungraded = replace(evidence, relevant_ids=ids, rank_scores=self._rank_scores(candidates, known))
            ungraded_turn = replace(turn, evidence=ungraded)
            return {"turn": degraded(ungraded_turn, "grader", error)}
        yes = [passage for passage in evidence.passages if judged.get(passage.chunk_id, 0.0) >= self.threshold]
        if yes and evidence.passages[0] not in yes:
            yes.append(evidence.passages[0])
        relevance = max((judged.get(passage.chunk_id, 0.0) for passage in yes), default=0.0)
        evidence = replace(evidence, relevance_by_chunk=judged, relevance=relevance)
        evidence = evidence.reordered(self._rank_scores(yes, judged))
        graded = replace(turn, evidence=evidence)
        if self.promising is not None:
            gate = Gate("relevance", relevance >= self.promising, relevance, self.promising)
            graded = replace(graded, verdict=Verdict(gates=(gate,)))
        return {"turn": graded}

    def _rank_scores(self, passages: Iterable[Passage], judged: Mapping[str, float]) -> dict[str, float]:
        share = self.search_share
        return {
            passage.chunk_id: share * passage.score + (1 - share) * judged.get(passage.chunk_id, 0.0)
            for passage in passages
        }
