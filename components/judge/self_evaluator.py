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
            evaluation = self.judge.evaluate(turn, turn.draft)
        except Exception as error:
            return {"turn": scored(degraded(turn, "self_evaluator", error), turn.draft, NOT_EVALUATED)}
        if turn.draft.evaluation is not None:
            evaluation = bounded(
                turn.draft.evaluation, evaluation, is_complete=turn.draft.factuality == _NOTHING_DROPPED
            )
        return {"turn": scored(turn, turn.draft, evaluation)}


def bounded(model: SelfEvaluation, local: SelfEvaluation, *, is_complete: bool) -> SelfEvaluation:
    """The model's evaluation; codes that the draft does not name are missing whatever it says.

    :param is_complete: whether the draft it saw is the one that is left.
    """
    capped = replace(model, missing=tuple(dict.fromkeys((*local.missing, *model.missing))))
    if is_complete:
        return capped
    return replace(
        capped,
        quality=min(model.quality, local.quality),
        confidence=min(model.confidence, local.confidence),
        answerability=max(model.answerability, local.answerability, key=_ANSWERS.index),
    )


def scored(turn: Turn, draft: Draft, evaluation: SelfEvaluation) -> Turn:
    """The turn with this draft, evaluated, and the best of all passes."""
    draft = replace(
        draft,
        evaluation=None,
        relevance=turn.evidence.adequacy,
        quality=evaluation.quality,
        confidence=evaluation.confidence,
        answerability=evaluation.answerability,
        missing=evaluation.missing,
    )
    return replace(turn, draft=draft, best=better_draft(turn.best, draft))


def better_draft(best: Draft | None, draft: Draft) -> Draft:
    """The better of two drafts: facts, agreement, quality, relevance count in this order; the earlier one on a tie."""
    if best is None:
        return draft
    return draft if _sort_key(draft) > _sort_key(best) else best


def _sort_key(draft: Draft) -> tuple[float, float, int, float]:
    agreed = 1.0 if draft.agreement is None else draft.agreement
    return draft.factuality, agreed, draft.quality, draft.relevance
