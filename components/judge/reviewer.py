"""After answering: two judges look at the draft, and a claim needs both."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

from haystack import component

from components.answer.telling import heard_by
from components.judge.claims import RANK
from components.judge.consistency import Writer, agreement
from components.judge.protocol import Cited, ClaimVerdict, Judge, Reviewer, SelfEvaluation
from components.judge.self_evaluator import NOT_EVALUATED, scored
from components.judge.verifier import cited, repaired, unchecked
from components.turn import Answerability, Draft, Turn

_ANSWERS: Sequence[Answerability] = ("fully", "partially", "cannot", "unknown")


@component
class AnswerReviewer:
    """Checks the claims of a draft and evaluates it at the same time, so that both take no longer than one.

    A claim stays when the model and the local check both support it. An evaluation is of what was drafted: where claims
    were dropped, the local judge's of what is left bounds it. Where the model fails, the local judge's word stands
    alone and the turn is marked degraded: `verifier`, `self_evaluator`. A draft without a supported claim, or for a
    quick answer, is not evaluated by a model.

    :param judge: the model that judges.
    :param local: the judge that needs none.
    :param max_claims: most claims checked; those beyond are dropped unchecked.
    :param second: writes the answer once more, unheard, at the same time; how far it says the same is the draft's
        agreement, by which `RetryRouter` may ask for another pass. None: answers are written once.
    """

    def __init__(self, judge: Reviewer, local: Judge, max_claims: int = 10, second: Writer | None = None) -> None:
        self.judge = judge
        self.local = local
        self.max_claims = max_claims
        self.second = second

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its draft checked, repaired and scored, and `best` up to date."""
        draft = turn.draft
        if draft is None:
            return {"turn": turn}
        claims = cited(draft)[: self.max_claims]
        try:
            verdicts = self.local.check_all(turn, claims)
        except Exception:
            return {"turn": scored(turn.degraded_at("verifier"), unchecked(draft), NOT_EVALUATED)}
        if all(verdict.status != "supported" for verdict in verdicts):
            left = repaired(draft, verdicts)
            return {"turn": scored(turn, left, self.local.evaluate(turn, left))}
        return {"turn": self._reviewed(turn, draft, claims, verdicts)}

    def _reviewed(self, turn: Turn, draft: Draft, claims: Sequence[Cited], verdicts: Sequence[ClaimVerdict]) -> Turn:
        with ThreadPoolExecutor(2, thread_name_prefix="review") as pool:
            deep = turn.quality != "quick"
            evaluating = pool.submit(copy_context().run, self.judge.evaluate, turn, draft) if deep else None
            writing = pool.submit(copy_context().run, _written, self.second, turn) if self.second else None
            try:
                second = self.judge.check_all(turn, claims)
                verdicts = [_both(one, two) for one, two in zip(verdicts, second, strict=True)]
            except Exception:
                turn = turn.degraded_at("verifier")
            left = repaired(draft, verdicts)
            if writing is not None and (again := writing.result()) is not None:
                left = replace(left, agreement=agreement(draft, again))
            own = self.local.evaluate(turn, left)
            if evaluating is None:
                return scored(turn, left, own)
            try:
                found = evaluating.result()
            except Exception:
                return scored(turn.degraded_at("self_evaluator"), left, own)
        return scored(turn, left, _bounded(found, own, whole=len(left.claims) == len(draft.claims)))


def _written(second: Writer, turn: Turn) -> Draft | None:
    """Another draft for the same evidence, an empty one for a refusal; None when no model wrote: nothing to compare."""
    with heard_by(None):
        after = next(iter(second.run(turn).values()))
    return (after.draft or Draft("", (), ())) if after.degraded == turn.degraded else None


def _both(local: ClaimVerdict, model: ClaimVerdict) -> ClaimVerdict:
    """The stricter verdict, with the words that the model found where it found any."""
    status = min(local.status, model.status, key=lambda one: RANK[one])
    return ClaimVerdict(status, min(local.score, model.score), model.quote or local.quote)


def _bounded(model: SelfEvaluation, local: SelfEvaluation, *, whole: bool) -> SelfEvaluation:
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
