"""How good is the draft as an answer to this question?"""

from dataclasses import replace

from haystack import component

from components.judge.protocol import Judge
from components.turn import Draft, Turn


@component
class SelfEvaluator:
    """Scores the draft and keeps the best one of all passes.

    When the judge fails, quality is 0, answerability `unknown` and the turn marked degraded: a score is measured or it
    is not there.

    :param judge: who evaluates.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its draft scored and `best` up to date."""
        if turn.draft is None:
            return {"turn": turn}
        relevance = turn.evidence.adequacy
        try:
            found = self.judge.evaluate(turn.query, turn.draft, relevance)
        except Exception:
            scored = replace(turn.draft, relevance=relevance, quality=0, confidence=0.0, answerability="unknown")
            failed = turn.degraded_at("self_evaluator")
            return {"turn": replace(failed, draft=scored, best=better(turn.best, scored))}
        scored = replace(
            turn.draft,
            relevance=relevance,
            quality=found.quality,
            confidence=found.confidence,
            answerability=found.answerability,
            missing=found.missing,
        )
        return {"turn": replace(turn, draft=scored, best=better(turn.best, scored))}


def better(one: Draft | None, two: Draft) -> Draft:
    """The better of two drafts: facts before quality before relevance; the earlier one on a tie."""
    if one is None:
        return two
    return two if (two.factuality, two.quality, two.relevance) > (one.factuality, one.quality, one.relevance) else one
