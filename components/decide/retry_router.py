"""After verification: show the draft, retry, or hand over to a person."""

from collections.abc import Iterator
from dataclasses import replace

from haystack import component

from components.judge.requirements import requirements
from components.turn import Draft, Gate, Turn, Verdict


@component
class RetryRouter:
    """Decides by facts first, then by the two gates, then by what is left of the budget.

    `auto` needs every shown claim supported, `quality` at its threshold, what the kind of the question demands (`kind`)
    and the rare names that it asks about (`object`). `relevance`, measured apart from quality, is held against the
    threshold of whoever let the evidence through. Otherwise another pass, when the budget allows one and the last pass
    found something new; else `human` with the reasons. The draft that goes on is the best of all passes, not the last.

    :param quality_threshold: least quality, 1..100.
    :param factuality_threshold: least percentage of drafted claims that were supported.
    :param agreement_threshold: least agreement with a second draft, 0..1, where one was written.
    """

    def __init__(
        self,
        quality_threshold: int = 80,
        factuality_threshold: float = 80.0,
        agreement_threshold: float = 0.5,
    ) -> None:
        self.quality_threshold = quality_threshold
        self.factuality_threshold = factuality_threshold
        self.agreement_threshold = agreement_threshold

    @component.output_types(done=Turn, retry=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn under exactly one of `done`, `retry`."""
        draft = turn.best or turn.draft or Draft("", (), ())
        gates = (*self._gates(draft), *_relevance(turn, draft), *requirements(turn, draft))
        failed = tuple(gate.name for gate in gates if not gate.passed)
        judged = replace(turn, draft=draft, best=draft)
        if not failed:
            return {"done": replace(judged, verdict=Verdict("auto", (), gates))}
        if turn.passes < turn.max_passes and turn.evidence.has_new:
            return {"retry": replace(judged, verdict=Verdict("retry", failed, gates))}
        spent = ("budget_exhausted",) if turn.passes >= turn.max_passes else ()
        return {"done": replace(judged, verdict=Verdict("human", (*failed, *spent), gates))}

    def _gates(self, draft: Draft) -> tuple[Gate, ...]:
        checked = draft.factuality_status == "checked" and bool(draft.claims)
        cited = checked and all(claim.status == "supported" and claim.citations for claim in draft.claims)
        facts = draft.factuality if cited else 0.0
        agreed, least = draft.agreement, self.agreement_threshold
        return (
            Gate("factuality", facts >= self.factuality_threshold, facts, self.factuality_threshold),
            Gate("quality", draft.quality >= self.quality_threshold, draft.quality, self.quality_threshold),
            *([] if agreed is None else [Gate("agreement", agreed >= least, agreed, least)]),
        )


def _relevance(turn: Turn, draft: Draft) -> Iterator[Gate]:
    """The relevance of the draft, perhaps that of an earlier pass, by the threshold of the gate before the answer."""
    for gate in turn.verdict.gates:
        if gate.name == "relevance":
            yield Gate("relevance", draft.relevance >= gate.threshold, draft.relevance, gate.threshold)
