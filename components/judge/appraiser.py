"""Before anything is generated: what a model makes of the evidence that the local judge let through."""

from dataclasses import replace

from haystack import component

from components.judge.evaluator import lost, routed
from components.judge.protocol import Appraisal, Appraiser, Judge
from components.turn import Turn


@component
class EvidenceAppraiser:
    """Has all passages graded YES or NO, and how far they answer together, in one call of the judge.

    All NO means no evidence. The best search hit is kept when others are, behind them if it was graded NO itself; what
    the judge was not shown is kept from the answer. Another pass is worth it when the judge names something missing
    that has not been searched for. An identifier stays exact: passages that hold none of the question's codes are worth
    nothing, whatever the judge says. When the judge fails, what the local judge measured decides, by its own
    thresholds, and the turn is degraded.

    :param judge: who appraises.
    :param local: who measured the adequacy that the turn comes with.
    :param depth: passages appraised, best first.
    :param threshold: least adequacy to answer: the relevance gate.
    :param least: least adequacy to answer, under a notice, when no other pass is to be had.
    :param local_threshold: least adequacy by the local judge to answer.
    :param local_worth_retrying: least adequacy by the local judge for another pass.
    """

    def __init__(
        self,
        judge: Appraiser,
        local: Judge,
        depth: int = 8,
        threshold: float = 0.75,
        least: float = 0.4,
        local_threshold: float = 0.57,
        local_worth_retrying: float = 0.3,
    ) -> None:
        self.judge = judge
        self.local = local
        self.depth = depth
        self.threshold = threshold
        self.least = least
        self.local_threshold = local_threshold
        self.local_worth_retrying = local_worth_retrying

    @component.output_types(enough=Turn, retry=Turn, refuse=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn under exactly one of `enough`, `retry`, `refuse`."""
        try:
            found = self.judge.appraise(turn, turn.evidence.usable()[: self.depth])
        except Exception:
            again = turn.evidence.adequacy >= self.local_worth_retrying
            return routed(turn.degraded_at("appraiser"), self.local_threshold, again=again, absent="no_evidence")
        judged = self._judged(turn, found)
        absent = "code_not_found" if lost(judged, judged.evidence.uncovered) else "no_evidence"
        # What is missing is the last thing that the rewriter would search for, so it always has a query for this.
        again = absent == "no_evidence" and not set(found.missing) <= set(turn.query.tried)
        return routed(judged, self.threshold, again=again, absent=absent, least=self.least)

    def _judged(self, turn: Turn, found: Appraisal) -> Turn:
        """The turn with the evidence that the judge let through."""
        evidence = turn.evidence
        kept = tuple(one for one in evidence.kept if one in found.answering)
        best = evidence.passages[0].chunk_id if evidence.passages else ""
        if kept and best not in kept and best in evidence.kept:
            kept = (*kept, best)
        places = {one: evidence.places[one] for one in kept}
        chosen = replace(evidence, kept=kept, places=places, missing=found.missing)
        uncovered = self.local.uncovered(turn.query, chosen.usable())
        adequacy = 0.0 if not kept or lost(turn, uncovered) else found.adequacy
        return replace(turn, evidence=replace(chosen, adequacy=adequacy, uncovered=uncovered))
