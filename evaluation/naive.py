"""The order in which a naive pipeline asks its models: a call for each passage and each claim, one after another."""

from collections.abc import Sequence
from threading import Lock

from components.judge.appraiser import EvidenceAppraiser
from components.judge.llm import LlmJudge
from components.judge.protocol import Appraisal, Cited, ClaimVerdict, SelfEvaluation
from components.judge.reviewer import AnswerReviewer
from components.turn import Draft, Passage, Turn
from pipelines.ask.engine import AskEngine


class OneByOneJudge:
    """Asks the model's judge about one thing at a time, and never about two at once."""

    def __init__(self, judge: LlmJudge) -> None:
        self._judge = judge
        self._asking = Lock()

    def appraise(self, turn: Turn, passages: Sequence[Passage]) -> Appraisal:
        """A call for each passage; then one for what those that answer come to together."""
        with self._asking:
            grades = [self._judge.appraise(turn, [passage]) for passage in passages]
            chosen = [passage for passage, grade in zip(passages, grades, strict=True) if grade.answering]
            return self._judge.appraise(turn, chosen or passages)

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        """A call for each claim."""
        with self._asking:
            return [verdict for claim in claims for verdict in self._judge.check_all(turn, [claim])]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        """One call, beside no other."""
        with self._asking:
            return self._judge.evaluate(turn, draft)


def slow_down(engine: AskEngine) -> None:
    """Let every step of the pipeline that asks a model's judge ask one by one."""
    for _, found in engine.pipeline.walk():
        if isinstance(found, EvidenceAppraiser | AnswerReviewer) and isinstance(found.judge, LlmJudge):
            found.judge = OneByOneJudge(found.judge)
