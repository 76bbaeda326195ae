"""Figures of a run, its failing questions, and what differs from the run before it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean

from pydantic import BaseModel, ConfigDict, TypeAdapter

from components.language.captions import HEADING_SEPARATOR
from components.turn import SHOWN, Passage, Turn
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.evaluation import questions
from pipelines.ask.evaluation.comparison import Difference, difference
from pipelines.ask.evaluation.marking import MARKS, OFFERS_READ, RIGHT, Mark, cited, mark
from tenants.desk import evaluation_results
from tenants.desk.evaluation_questions import EvaluationQuestion
from tenants.desk.evaluation_results import EvaluationResult
from tenants.storage.tables import JsonObject

SILENT = timedelta(minutes=5)
"""Time without progress after which a run counts as dead."""
_TEXT_SHOWN = 1_000


class AnsweredQuestion(BaseModel):
    """A question of a run, with its mark and with what was expected of it at the time of the run.

    :ivar shown: the sections that were cited or offered.
    :ivar axes: scores by models, each 0..1; empty where no model was asked.
    """

    model_config = ConfigDict(frozen=True)

    question_id: str
    question: str
    facts: tuple[str, ...]
    article: str
    refused: bool
    mark: Mark
    outcome: str
    text: str = ""
    shown: tuple[str, ...] = ()
    axes: Mapping[str, float] = {}
    degraded: bool = False

    @property
    def is_right(self) -> bool:
        return self.mark in RIGHT


_ANSWERS = TypeAdapter(tuple[AnsweredQuestion, ...])


@dataclass(frozen=True, slots=True)
class Report:
    """A run with its answers. The first run has no `before` and no `difference`. `earlier` holds the marks before."""

    result: EvaluationResult
    answers: tuple[AnsweredQuestion, ...]
    before: EvaluationResult | None
    difference: Difference | None
    earlier: Mapping[str, Mark]

    @property
    def failing(self) -> tuple[AnsweredQuestion, ...]:
        failing = [answer for answer in self.answers if not answer.is_right]
        return tuple(sorted(failing, key=lambda answer: answer.mark != "wrong"))

    def named(self, question_ids: Sequence[str]) -> tuple[AnsweredQuestion, ...]:
        return tuple(one for one in self.answers if one.question_id in question_ids)


def answered(one: EvaluationQuestion, turn: Turn, answer: TurnAnswer) -> AnsweredQuestion:
    shown = cited(turn) if turn.outcome in SHOWN else (each.passage for each in turn.reply.articles[:OFFERS_READ])
    return AnsweredQuestion(
        **questions.as_json(one),
        mark=mark(turn, one.expected),
        outcome=answer.outcome,
        text=answer.answer.text[:_TEXT_SHOWN],
        shown=tuple(dict.fromkeys(map(_path, shown))),
        axes=_axes(answer),
        degraded=bool(answer.meta.degraded),
    )


def failed(one: EvaluationQuestion) -> AnsweredQuestion:
    return AnsweredQuestion(**questions.as_json(one), mark="missed", outcome="failed")


def figures(answers: Sequence[AnsweredQuestion]) -> JsonObject:
    counts: dict[str, int] = {name: sum(one.mark == name for one in answers) for name in MARKS}
    axes = dict.fromkeys(name for one in answers for name in one.axes)
    means = {name: round(fmean(one.axes[name] for one in answers if name in one.axes), 4) for name in axes}
    return {
        "n": len(answers),
        "marks": dict(counts),
        "right": round(sum(counts[name] for name in RIGHT) / len(answers), 4),
        "axes": dict(means),
        "degraded": sum(one.degraded for one in answers),
    }


def answers_of(run_id: str) -> tuple[EvaluationResult, tuple[AnsweredQuestion, ...]]:
    """Return a run and its answers; only finished runs have answers. Raises `NotFound`: `evaluation_unknown`."""
    result, stored = evaluation_results.get(run_id)
    return result, _ANSWERS.validate_python(stored.get("answers", ()))


def report(run_id: str) -> Report:
    """Compare a run with the previous one. Raises `NotFound` (`evaluation_unknown`)."""
    result, answers = answers_of(run_id)
    before = done_before(result)
    if before is None or not answers:
        return Report(result, answers, None, None, {})
    earlier = marks_of(before)
    return Report(result, answers, before, difference(earlier, marks(answers)), earlier)


def done_before(result: EvaluationResult) -> EvaluationResult | None:
    earlier = (one for one in evaluation_results.latest() if one.created_at < result.created_at)
    return next((one for one in earlier if one.state == "done"), None)


def marks_of(result: EvaluationResult) -> Mapping[str, Mark]:
    return marks(answers_of(result.run_id)[1])


def marks(answers: Sequence[AnsweredQuestion]) -> Mapping[str, Mark]:
    return {one.question_id: one.mark for one in answers}


def is_running(result: EvaluationResult) -> bool:
    return result.state == "running" and datetime.now(UTC) - result.updated_at < SILENT


def result_as_json(result: EvaluationResult) -> dict[str, object]:
    state = "stopped" if result.state == "running" and not is_running(result) else result.state
    return {**asdict(result), "state": state}


def as_json(shown: Report) -> dict[str, object]:
    changes = shown.difference
    return {
        "schema": "evaluation.result.v1",
        **result_as_json(shown.result),
        "failing": [one.model_dump(mode="json") for one in shown.failing],
        "before": shown.before.run_id if shown.before else None,
        "worse": list(changes.worse) if changes else [],
        "better": list(changes.better) if changes else [],
    }


def _path(passage: Passage) -> str:
    return HEADING_SEPARATOR.join(filter(None, (passage.title, passage.heading))) or passage.doc_id


def _axes(answer: TurnAnswer) -> dict[str, float]:
    if answer.outcome not in SHOWN or not answer.meta.llm_calls:
        return {}
    scores = answer.scores
    axes = {"quality": scores.quality / 100, "relevance": scores.relevance} if scores.quality else {}
    checked = scores.factuality.status == "checked"
    return {**axes, "factuality": scores.factuality.value / 100} if checked else axes
