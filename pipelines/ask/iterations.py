"""The retrieval passes of a turn: what each one found, decided and took.

A pass begins with the first step that sends `documents`, the retriever, and ends with the step that counts the next
one (`attempt`) or with the outcome. A message of several questions makes passes for each of them.
"""

from collections.abc import Iterable, Iterator

from haystack import Document

from components.answer.drafts import to_draft
from components.passages import relevance, to_passage
from components.turn import Verdict
from pipelines.ask.contract import IterationPart, RetrieverPart
from pipelines.ask.steps import Step
from tenants.index import DENSE, SPARSE

_AFTER = frozenset({"turn", "suggestions"})
"""Outputs of the steps behind the passes."""


class Passes:
    """Collects the passes of a turn from its steps, in the order in which they end."""

    def __init__(self) -> None:
        self._number = 1
        self._part: IterationPart | None = None
        self._started = 0
        self.ended = 0
        """When the last step of the latest pass ended, in nanoseconds of the monotonic clock."""

    def add(self, step: Step) -> IterationPart | None:
        outputs = step.outputs or {}
        if _AFTER & outputs.keys():
            return self._close(1)
        if self._part is None and "documents" in outputs:
            self._started = step.started
            self._part = IterationPart(iteration=self._number, took_ms=0.0, retriever=_retriever(step))
        if self._part is not None:
            self.ended = step.ended
            changes = {**_changes(step), "took_ms": _milliseconds(step.ended - self._started)}
            self._part = self._part.model_copy(update=changes)
        attempt = outputs.get("attempt", self._number)
        return self._close(attempt) if attempt > self._number else None

    def end(self) -> IterationPart | None:
        """Return the pass that is still open, after the last step."""
        return self._close(1)

    def _close(self, following: int) -> IterationPart | None:
        closed, self._part, self._number = self._part, None, following
        return closed


def iterations(steps: Iterable[Step]) -> Iterator[tuple[IterationPart, int]]:
    passes = Passes()
    for step in steps:
        if (part := passes.add(step)) is not None:
            yield part, passes.ended
    if (part := passes.end()) is not None:
        yield part, passes.ended


def _retriever(step: Step) -> RetrieverPart:
    outputs = step.outputs or {}
    documents: list[Document] = outputs["documents"]
    scores = [to_passage(document).scores for document in documents]
    return RetrieverPart(
        took_ms=_milliseconds(step.ended - step.started),
        found=len(documents),
        by_words=sum(SPARSE in one for one in scores),
        by_meaning=sum(DENSE in one for one in scores),
        best_score=round(max((document.score or 0.0 for document in documents), default=0.0), 4),
        cached=bool(outputs.get("cached", False)),
    )


def _changes(step: Step) -> dict[str, object]:
    outputs, found = step.outputs or {}, dict[str, object]()
    if "graded" in outputs:
        graded: list[Document] = outputs["graded"]
        found |= {"graded": len(graded), "accepted": sum(bool(one.meta.get("graded")) for one in graded)}
        found["relevance"] = round(max(map(relevance, graded), default=0.0), 4)
    if "adequacy" in outputs:
        found["adequacy"] = round(outputs["adequacy"], 4)
    if isinstance(verdict := outputs.get("verdict", outputs.get("refuse")), Verdict):
        found |= {"route": verdict.route, "reasons": verdict.reasons}
    if answers := outputs.get("answers"):
        draft = to_draft(answers[0])
        found |= {"claims": len(draft.claims), "factuality": draft.factuality}
    if (evaluation := outputs.get("evaluation")) is not None:
        found["quality"] = evaluation.quality
    return found


def _milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 3)
