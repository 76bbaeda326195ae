"""The ways in which models fail a turn, generated: every fault at every task, on the first pass and on a later one.

Each trial has one declared end. A turn may lose its judge, its writer or both; what it shows is what the passages bear
out, and `meta.degraded` names what it had to do without.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import get_args

from components.turn import Outcome
from evaluation.simulator.knobs import Fault, FaultKind, Knobs, Task

TASKS: tuple[Task, ...] = ("answer", "appraise", "review", "evaluate", "rewrite")
DOUBT = Fault(kind="doubtful", task="evaluate", times=1)
"""What sends a turn into a second pass: its first answer is found wanting."""

_DEGRADED: Mapping[Task, str] = {
    "answer": "answer",
    "appraise": "appraiser",
    "review": "verifier",
    "evaluate": "self_evaluator",
    "rewrite": "rewriter",
}
_OF_FORM: frozenset[FaultKind] = frozenset({"injected", "invented", "doubtful"})
_BREAKS_OFF: frozenset[FaultKind] = frozenset({"truncated", "cut_off"})


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault at one task; `later` leaves the first pass unharmed."""

    kind: FaultKind
    task: Task
    later: bool

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.kind}/{self.task}/{'second' if self.later else 'first'}"

    @property
    def knobs(self) -> Knobs:
        """What makes the simulator fail so. Its honest answers to the question of the trial are good."""
        fault = Fault(kind=self.kind, task=self.task, after=int(self.later and self.task != "rewrite"))
        return Knobs(faults=(DOUBT, fault) if self.later else (fault,))

    @property
    def degraded(self) -> str:
        """What the turn has to say that it did without; empty where the reply was of the form that was asked for."""
        if self.kind in _OF_FORM:
            return ""
        return "answer_cut" if self.task == "answer" and self.kind in _BREAKS_OFF else _DEGRADED[self.task]

    @property
    def outcome(self) -> Outcome:
        """The declared end of a question that the knowledge base answers.

        An answer that was found wanting stays so where no model finds a query, or where the doubts do not end.
        """
        if self.task == "rewrite" and self.degraded:
            return "low_confidence"
        return "low_confidence" if self.kind == "doubtful" and self.task in ("appraise", "evaluate") else "answered"


def trials() -> Iterator[Trial]:
    """All of them; queries are written for a second pass alone."""
    for kind, task, later in product(get_args(FaultKind), TASKS, (False, True)):
        if task != "rewrite" or later:
            yield Trial(kind, task, later)
