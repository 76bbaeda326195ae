"""Before anything is generated: is the evidence enough to answer?"""

from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.appraiser import EvidenceAppraiser, lacks_codes
from components.judge.protocol import Judge
from components.retrieve.tools import STEP, ToolSearch
from components.turn import Gate, Turn, Verdict


@component
class RetrievalEvaluator:
    """Sends a turn on to answering, back for more evidence, or to its refusal.

    Adequacy is the relevance of the best passage; 0 when the question names codes and the kept passages hold none of
    them, because an identifier is exact or it is another one. Another pass is made only from `worth_retrying` upwards,
    while the budget lasts and the last pass added evidence: a hopeless question is refused at once. Before that, the
    tenant's tools are called when the evidence is not sufficient.

    With an appraiser, a model decides on evidence that is not hopeless. Another pass is then made when the model names
    a missing topic that has not been searched for; when it fails, the local judgement decides and the turn is degraded.

    :param judge: finds what is uncovered; when it fails, relevance alone decides and the turn is degraded.
    :param threshold: least adequacy to answer: the relevance gate.
    :param worth_retrying: least adequacy for another pass.
    :param tools: the tenant's tools; None to use none.
    :param appraiser: a model that looks at the same evidence; None for the local judgement alone.
    """

    def __init__(
        self,
        judge: Judge,
        threshold: float = 0.55,
        worth_retrying: float = 0.3,
        tools: ToolSearch | None = None,
        appraiser: EvidenceAppraiser | None = None,
    ) -> None:
        self.judge = judge
        self.threshold = threshold
        self.worth_retrying = worth_retrying
        self.tools = tools
        self.appraiser = appraiser

    @component.output_types(enough=Turn, retry=Turn, refuse=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn under exactly one of `enough`, `retry`, `refuse`."""
        judged = self._judged(turn)
        if self.tools is not None:
            with_tools = self._with_tools(judged, self.tools)
            judged = self._judged(with_tools) if with_tools.evidence is not judged.evidence else with_tools
        if self.appraiser is not None and judged.evidence.adequacy >= self.appraiser.promising:
            return self._appraised(judged, self.appraiser)
        return self._routed(judged)

    def _routed(self, judged: Turn) -> dict[str, Turn]:
        again = judged.evidence.adequacy >= self.worth_retrying
        return routed(judged, self.threshold, again=again)

    def _appraised(self, turn: Turn, appraiser: EvidenceAppraiser) -> dict[str, Turn]:
        try:
            appraised = appraiser.appraised(turn, self.judge)
        except Exception as error:
            return self._routed(degraded(turn, "appraiser", error))
        # What is missing is the last thing that the rewriter would search for, so it always has a query for this.
        unsearched = not set(appraised.evidence.missing) <= set(turn.query.searched_texts)
        again = unsearched and not lacks_codes(turn.query, appraised.evidence.uncovered)
        return routed(appraised, appraiser.threshold, again=again, min_adequacy=appraiser.min_adequacy)

    def _judged(self, turn: Turn) -> Turn:
        evidence = turn.evidence
        try:
            uncovered = self.judge.uncovered(turn.query, evidence.relevant_passages())
        except Exception as error:
            uncovered, turn = (), degraded(turn, "retrieval_evaluator", error)
        adequacy = 0.0 if lacks_codes(turn.query, uncovered) or not evidence.relevant_ids else evidence.relevance
        return replace(turn, evidence=replace(evidence, adequacy=adequacy, uncovered=uncovered))

    def _with_tools(self, turn: Turn, tools: ToolSearch) -> Turn:
        try:
            return tools.consult(turn, self.judge)
        except Exception as error:
            return degraded(turn, STEP, error)


def routed(turn: Turn, threshold: float, *, again: bool, min_adequacy: float | None = None) -> dict[str, Turn]:
    """The turn under `enough`, `retry` or `refuse`, by the adequacy of its evidence; the gate stands in its verdict.

    :param threshold: least adequacy that is enough.
    :param again: whether another pass may bring more, if the budget allows one and the last pass did.
    :param min_adequacy: to go on when no pass is left; `threshold` when None.
    """
    adequacy = turn.evidence.adequacy
    gate = Gate("relevance", adequacy >= threshold, adequacy, threshold)
    judged = replace(turn, verdict=Verdict(gates=(gate,)))
    if gate.passed:
        return {"enough": judged}
    if again and turn.evidence.has_new and turn.passes < turn.max_passes:
        return {"retry": replace(judged, verdict=replace(judged.verdict, route="retry", reasons=("weak_evidence",)))}
    if min_adequacy is not None and adequacy >= min_adequacy:
        return {"enough": judged}
    absent = "code_not_found" if lacks_codes(turn.query, turn.evidence.uncovered) else "no_evidence"
    return {"refuse": replace(judged, verdict=replace(judged.verdict, route="human", reasons=(absent,)))}
