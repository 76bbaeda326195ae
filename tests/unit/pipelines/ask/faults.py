"""Generated model failures: every fault at every task, on the first pass and on a later one.

Each trial has one declared end. A turn may lose its judge and its writer, its vectors, its ranker or its tool; what it
shows is what the passages bear out, and `meta.degraded` names what it had to do without.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import get_args

from components.turn import Outcome
from evaluation.simulator.adapted import edited
from evaluation.simulator.knobs import DIMENSIONS, Fault, FaultKind, Knobs, Task

TASKS: tuple[Task, ...] = ("answer", "grade", "review", "evaluate", "rewrite", "embed", "rank", "tool")
SEARCHING: frozenset[Task] = frozenset({"embed", "rank", "tool"})
"""Tasks that find evidence, which have their own models."""
QUESTION = "Ошибка E20, что делать?"
DOUBT = Fault(kind="doubtful", task="evaluate", times=1)
"""Sends a turn into a second pass: the evaluation rejects its first answer."""

_DEGRADED: Mapping[Task, str] = {
    "answer": "answer",
    "grade": "grader",
    "review": "verifier",
    "evaluate": "self_evaluator",
    "rewrite": "rewriter",
    "embed": "embedder",
    "rank": "rerank",
    "tool": "tools",
}
_MODELS = "haystack_integrations.components"
_NO_TIMEOUT = 600
_OF_FORM: frozenset[FaultKind] = frozenset({"injected", "invented", "doubtful", "sloppy"})
_OF_MODELS: frozenset[FaultKind] = frozenset({"looping", "sloppy", "copied"})
"""Manners of language models: a tool has none."""
_PARTIAL: frozenset[tuple[FaultKind, Task]] = frozenset({("doubtful", "evaluate"), ("injected", "answer")})
"""Faults that leave a part of the answer: a judge that misses something, or dropped sentences."""
_KNOWS_NOTHING: frozenset[FaultKind] = frozenset({"empty", "refusal", "wrong_schema", "doubtful"})
"""Replies without the expected fields, which to a tool's sentences mean that no answer is known."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A fault at a task; `later` leaves the first pass unharmed."""

    kind: FaultKind
    task: Task
    later: bool

    @property
    def name(self) -> str:
        """Return the name in reports."""
        return f"{self.kind}/{self.task}/{'second' if self.later else 'first'}"

    @property
    def question(self) -> str:
        """Return a question that the tool or the knowledge base answers."""
        return "Какой статус у заказа 100123?" if self.task == "tool" else QUESTION

    @property
    def knobs(self) -> Knobs:
        """Return settings that make the simulator fail so. Its honest answers to the trial's question are good."""
        fault = Fault(kind=self.kind, task=self.task, after=int(self.later and self.task != "rewrite"))
        return Knobs(faults=(DOUBT, fault) if self.later else (fault,))

    @property
    def degraded(self) -> str:
        """Return the step that the turn must report as degraded; empty if the reply had the requested form."""
        if self.task == "embed":
            # Numbers neither obey nor invent: a fault of words is a vector of another length.
            return _DEGRADED[self.task]
        if self.kind == "copied" and self.task == "rank":
            return ""  # its prompt has no example
        if self.task == "tool" and self.kind in _OF_MODELS:
            return ""
        if self.kind in _OF_FORM or (self.task == "tool" and self.kind in _KNOWS_NOTHING):
            return ""
        return _DEGRADED[self.task]

    @property
    def outcome(self) -> Outcome:
        """The declared end of a question that the knowledge base answers.

        An answer that could not be checked is not shown; a checked answer of the first pass is.
        """
        if (self.kind, self.task) in _PARTIAL:
            return "partially_answered"
        if self.kind == "injected" and self.task in ("rank", "tool"):
            # The worst comes first, so that the best is not read; and orders in the place of a fact are not quoted.
            return "partially_answered" if self.later else "refused" if self.task == "rank" else "cannot_answer"
        if not self.degraded or self.task not in ("review", "evaluate"):
            return "answered"
        if self.later:
            return "partially_answered"
        return "human_followup" if self.task == "review" else "low_confidence"


def trials() -> Iterator[Trial]:
    """All of them; queries are written for a second pass alone, and tools asked in the first.

    In this order no embedder, ranker or tool fails three times in a row, so that none is left alone.
    """
    for kind, task, later in product(get_args(FaultKind), TASKS, (False, True)):
        if task not in ("rewrite", "tool") or later == (task == "rewrite"):
            yield Trial(kind, task, later)


def equip(folder: Path, url: str, patience: float = _NO_TIMEOUT) -> Path:
    """Connect the embedder of pipelines that `adapt` has copied to `folder` to the simulator.

    Its clients have practically no timeout, so that only the turn limits a call.

    :param patience: seconds that a question waits for its vector.
    :returns: `folder`; its ingest pipeline writes vectors.
    """
    server = {"url": url, "timeout": _NO_TIMEOUT}
    texts, documents = (
        f"{_MODELS}.embedders.ollama.{kind}_embedder.Ollama{kind.title()}Embedder" for kind in ("text", "document")
    )
    with edited(folder / "ingest" / "ingest.yaml") as profile_yaml:
        profile_yaml["components"]["writer"]["init_parameters"]["embedder"] = _nested(
            "components.embed.stock.StockEmbedder",
            model="simulated-embed",
            dimensions=DIMENSIONS,
            patience=patience,
            passages_by=_nested(documents, model="simulated-embed", progress_bar=False, **server),
            questions_by=_nested(texts, model="simulated-embed", **server),
        )
    return folder


def tool(url: str, timeout: float = 5) -> Mapping[str, object]:
    """Return the simulator's tool as a tenant describes it: the state of an order."""
    number = {"type": "string", "pattern": r"\b\d{6}\b"}
    return {
        "name": "orders",
        "title": "Заказы",
        "description": "Статус заказа",
        "url": f"{url}/tool",
        "parameters": {"properties": {"number": number}, "required": ["number"]},
        "answer": "Заказ {number}: {state}.\nЕго доставят {day}.",
        "timeout_seconds": timeout,
    }


def _nested(kind: str, **parameters: object) -> dict[str, object]:
    return {"type": kind, "init_parameters": parameters}
