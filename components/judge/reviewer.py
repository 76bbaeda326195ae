"""What a model makes of a draft that the local judge let through: its claims and the whole at the same time."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from components.answer.token_sink import token_sink
from components.judge.consistency import Writer, agreement
from components.judge.protocol import Cited, ClaimVerdict, Reviewer
from components.nested import Nested
from components.turn import Draft, SelfEvaluation, Turn


@dataclass(frozen=True, slots=True)
class Review:
    """A model's verdicts on the claims, its evaluation of the draft, and how far a second draft agrees.

    Each is None where nobody was asked or the model failed; `failed` names the steps that do without it, and why.
    """

    verdicts: Sequence[ClaimVerdict] | None
    evaluation: SelfEvaluation | None
    agreement: float | None
    failed: tuple[tuple[str, Exception], ...]


class DraftReviewer(Nested):
    """Has the claims checked and the draft evaluated at once, so that both take no longer than one.

    A draft for a quick answer is not evaluated by the model.

    :param judge: the model that judges.
    :param second: writes the answer once more, unheard, at the same time; how far it says the same is the draft's
        agreement, by which `RetryRouter` may ask for another pass. None: answers are written once.
    """

    def __init__(self, judge: Reviewer, second: Writer | None = None) -> None:
        self.judge = judge
        self.second = second

    def review(self, turn: Turn, draft: Draft, claims: Sequence[Cited]) -> Review:
        """What the model says; a model that fails is noted, and nothing is raised."""
        failed: list[tuple[str, Exception]] = []
        verdicts, evaluation = None, None
        with ThreadPoolExecutor(2, thread_name_prefix="review") as pool:
            evaluating: Future[SelfEvaluation] | None = None
            if turn.quality != "quick":
                evaluating = pool.submit(copy_context().run, self.judge.evaluate, turn, draft)
            writing = pool.submit(copy_context().run, _second_draft, self.second, turn) if self.second else None
            try:
                verdicts = self.judge.check_all(turn, claims)
            except Exception as error:
                failed.append(("verifier", error))
            try:
                evaluation = evaluating.result() if evaluating else None
            except Exception as error:
                failed.append(("self_evaluator", error))
            again = writing.result() if writing else None
        agreed = None if again is None else agreement(draft, again)
        return Review(verdicts, evaluation, agreed, tuple(failed))


def _second_draft(second: Writer, turn: Turn) -> Draft | None:
    """Another draft for the same evidence, an empty one for a refusal; None when no model wrote: nothing to compare."""
    with token_sink(None):
        after = next(iter(second.run(turn).values()))
    return (after.draft or Draft("", (), ())) if after.degraded == turn.degraded else None
