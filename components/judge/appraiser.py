"""A model's appraisal of the evidence that the local judge accepted, before anything is generated."""

from dataclasses import replace

from components.judge.protocol import Appraisal, Appraiser, Judge
from components.models.failures import Malformed
from components.nested import Nested
from components.turn import Query, Turn


class EvidenceAppraiser(Nested):
    """Has all passages graded YES or NO, and how far they answer together, in one call of the judge.

    All NO means no evidence. The best search hit is accepted whenever another passage is, ranked last if it was graded
    NO itself; passages not shown to the judge are not used in the answer. An identifier stays exact: passages that hold
    none of the question's codes are worth nothing, whatever the judge says.

    :param judge: who appraises.
    :param promising: least adequacy by the local judge to call the model; below it a question is hopeless.
    :param depth: passages appraised, best first.
    :param threshold: least adequacy to answer: the relevance gate.
    :param min_adequacy: least adequacy to answer with a notice when no pass is left.
    """

    def __init__(
        self,
        judge: Appraiser,
        promising: float = 0.2,
        depth: int = 8,
        threshold: float = 0.75,
        min_adequacy: float = 0.4,
    ) -> None:
        self.judge = judge
        self.promising = promising
        self.depth = depth
        self.threshold = threshold
        self.min_adequacy = min_adequacy

    def appraised(self, turn: Turn, local: Judge) -> Turn:
        """The turn with the evidence that the judge accepted.

        :raises Malformed: its judgement contradicts the codes in the passages.
        :raises Exception: whatever the judge raises.
        """
        appraisal = self.judge.appraise(turn, turn.evidence.relevant_passages()[: self.depth])
        evidence = turn.evidence
        answering = _answering(turn, appraisal)
        places = {chunk_id: evidence.rank_scores[chunk_id] for chunk_id in answering}
        graded = replace(evidence, relevant_ids=answering, rank_scores=places, missing=appraisal.missing)
        # Passages that the judge has put aside are still there: their codes are not unknown to the knowledge base.
        uncovered = local.uncovered(turn.query, graded.relevant_passages()) if answering else evidence.uncovered
        if answering and lacks_codes(turn.query, uncovered) and not lacks_codes(turn.query, evidence.uncovered):
            # It chose passages about other codes and put those with the question's own aside: it has not read them.
            raise Malformed
        adequacy = 0.0 if not answering or lacks_codes(turn.query, uncovered) else appraisal.adequacy
        return replace(turn, evidence=replace(graded, adequacy=adequacy, uncovered=uncovered))


def _answering(turn: Turn, appraisal: Appraisal) -> tuple[str, ...]:
    evidence = turn.evidence
    answering = tuple(chunk_id for chunk_id in evidence.relevant_ids if chunk_id in appraisal.answering)
    best = evidence.passages[0].chunk_id if evidence.passages else ""
    return (*answering, best) if answering and best not in answering and best in evidence.relevant_ids else answering


def lacks_codes(query: Query, uncovered: tuple[str, ...]) -> bool:
    """Whether the question names codes and the evidence holds none of them."""
    return bool(query.codes) and set(query.codes) <= set(uncovered)
