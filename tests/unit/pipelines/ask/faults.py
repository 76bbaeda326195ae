"""The ways in which models fail a turn, generated: every fault at every task, on the first pass and on a later one.

Each trial has one declared end. A turn may lose its judge and its writer, its vectors, its ranker or its tool; what it
shows is what the passages bear out, and `meta.degraded` names what it had to do without.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import get_args

from components.turn import Outcome
from evaluation.simulator.knobs import Fault, FaultKind, Knobs, Task

TASKS: tuple[Task, ...] = ("answer", "appraise", "review", "evaluate", "rewrite", "embed", "rank", "tool")
SEARCHING: frozenset[Task] = frozenset({"embed", "rank", "tool"})
"""The tasks of what finds evidence. No other model does them."""
QUESTION = "Ошибка E20, что делать?"
DOUBT = Fault(kind="doubtful", task="evaluate", times=1)
"""What sends a turn into a second pass: its first answer is found wanting."""

_DEGRADED: Mapping[Task, str] = {
    "answer": "answer",
    "appraise": "appraiser",
    "review": "verifier",
    "evaluate": "self_evaluator",
    "rewrite": "rewriter",
    "embed": "embedder",
    "rank": "reranker",
    "tool": "tools",
}
_OF_FORM: frozenset[FaultKind] = frozenset({"injected", "invented", "doubtful", "sloppy"})
_OF_MODELS: frozenset[FaultKind] = frozenset({"looping", "sloppy", "copied"})
"""Manners of language models: a tool has none."""
_COPIED_FITS: frozenset[Task] = frozenset({"evaluate", "rank"})
"""Where the reply of an example turn is of the right form for any question, or there is no example."""
_KNOWS_NOTHING: frozenset[FaultKind] = frozenset({"empty", "refusal", "wrong_schema"})
"""To a tool's sentences a reply without their fields is one that knows nothing."""
_BREAKS_OFF: frozenset[FaultKind] = frozenset({"truncated", "cut_off", "looping"})


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault at one task; `later` leaves the first pass unharmed. `number` tells it from the others."""

    kind: FaultKind
    task: Task
    later: bool
    number: int

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.kind}/{self.task}/{'second' if self.later else 'first'}"

    @property
    def question(self) -> str:
        """One that the knowledge base answers; where search is at fault, one that nobody has asked and found before."""
        return f"Какой статус у заказа {self.number}?" if self.task in SEARCHING else QUESTION

    @property
    def knobs(self) -> Knobs:
        """What makes the simulator fail so. Its honest answers to the question of the trial are good."""
        fault = Fault(kind=self.kind, task=self.task, after=int(self.later and self.task != "rewrite"))
        # A tool is asked again only when it has known nothing so far.
        silent = (Fault(kind="empty", task="tool", times=1),) if self.task == "tool" else ()
        return Knobs(faults=(DOUBT, *silent, fault) if self.later else (fault,))

    @property
    def degraded(self) -> str:
        """What the turn has to say that it did without; empty where the reply was of the form that was asked for."""
        if self.task == "embed":
            # Numbers neither obey nor invent: a fault of words is a vector of another length.
            return _DEGRADED[self.task]
        if self.task == "rank" and self.kind == "sloppy":
            # Haystack's own ranker reads its JSON to the letter.
            return _DEGRADED[self.task]
        if self.kind == "copied" and self.task in _COPIED_FITS:
            return ""
        if self.task == "tool" and self.kind in _OF_MODELS:
            return ""
        if self.kind in _OF_FORM or (self.task == "tool" and self.kind in _KNOWS_NOTHING):
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
    """All of them; queries are written for a second pass alone.

    In this order no embedder, ranker or tool fails three times in a row, so that none is left alone.
    """
    for number, (kind, task, later) in enumerate(product(get_args(FaultKind), TASKS, (False, True)), 100_000):
        if task != "rewrite" or later:
            yield Trial(kind, task, later, number)
