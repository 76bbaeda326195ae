"""The scores of a turn as annotations of its first span, so that Phoenix can filter, plot and compare by them."""

from collections.abc import Iterator

from pipelines.ask.contract import SHOWN, TurnAnswer
from pipelines.ask.tracing.otlp import span_id


def annotations(answer: TurnAnswer) -> Iterator[dict[str, object]]:
    """In the form of Phoenix's `POST /v1/span_annotations`; sent twice, they stand once."""
    yield _annotation(answer, "outcome", label=answer.outcome, explanation=answer.refusal_reason)
    yield _annotation(answer, "relevance", score=answer.scores.relevance)
    if answer.outcome not in SHOWN:
        return
    yield _annotation(answer, "confidence", score=answer.scores.confidence)
    yield _annotation(answer, "quality", score=answer.scores.quality / 100)
    factuality = answer.scores.factuality
    if factuality.status == "checked":
        yield _annotation(answer, "factuality", score=factuality.value / 100)


def _annotation(answer: TurnAnswer, name: str, **result: str | float | None) -> dict[str, object]:
    return {
        "span_id": span_id(answer.trace_id, 0),
        "name": name,
        "annotator_kind": "CODE",
        "identifier": "opora",
        "result": {part: value for part, value in result.items() if value is not None},
    }
