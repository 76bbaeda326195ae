"""How good is the draft as an answer to this question?"""

from collections.abc import Sequence
from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.protocol import Reviewer
from components.turn import Answerability, Draft, SelfEvaluation, Turn

NOT_EVALUATED = SelfEvaluation(0, "unknown", 0.0, ())
"""What stands where nobody could evaluate: a score is measured or it is not there."""

_NOTHING_DROPPED = 100.0
_ANSWERS: Sequence[Answerability] = ("fully", "partially", "cannot", "unknown")


@component
class SelfEvaluator:
    """Scores the draft and keeps the best one of all passes.

    Where a model has evaluated the draft while it was verified, its word counts, for the draft that it saw: where
    claims were dropped since, the judge's evaluation of what is left bounds it. When the judge fails, quality is 0,
    answerability `unknown` and the turn marked degraded.

    :param judge: who evaluates.
    """

    def __init__(self, judge: Reviewer) -> None:
        self.judge = judge

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its draft scored and `best` up to date."""
        if turn.draft is None:
            return {"turn": turn}
        try:
            found = self.judge.evaluate(turn, turn.draft)
        except Exception as error:
            return {"turn": scored(degraded(turn, "self_evaluator", error), turn.draft, NOT_EVALUATED)}
        if turn.draft.evaluation is not None:
            found = bounded(turn.draft.evaluation, found, whole=turn.draft.factuality == _NOTHING_DROPPED)
        return {"turn": scored(turn, turn.draft, found)}


def bounded(model: SelfEvaluation, local: SelfEvaluation, *, whole: bool) -> SelfEvaluation:
    """The model's evaluation; codes that the draft does not name are missing whatever it says.

    :param whole: whether the draft it saw is the one that is left.
    """
    found = replace(model, missing=tuple(dict.fromkeys((*local.missing, *model.missing))))
    if whole:
        return found
    return replace(
        found,
        quality=min(model.quality, local.quality),
        confidence=min(model.confidence, local.confidence),
        answerability=max(model.answerability, local.answerability, key=_ANSWERS.index),
    )


def scored(turn: Turn, draft: Draft, found: SelfEvaluation) -> Turn:
    """The turn with this draft, evaluated, and the best of all passes."""
    draft = replace(
        draft,
        evaluation=None,
        relevance=turn.evidence.adequacy,
        quality=found.quality,
        confidence=found.confidence,
        answerability=found.answerability,
        missing=found.missing,
    )
    return replace(turn, draft=draft, best=better(turn.best, draft))


def better(one: Draft | None, two: Draft) -> Draft:
    """The better of two drafts: facts, agreement, quality, relevance count in this order; the earlier one on a tie."""
    if one is None:
        return two
    return two if _worth(two) > _worth(one) else one


def _worth(draft: Draft) -> tuple[float, float, int, float]:
    agreed = 1.0 if draft.agreement is None else draft.agreement
    return draft.factuality, agreed, draft.quality, draft.relevance
