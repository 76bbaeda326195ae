"""The scores of a turn and people's verdicts as annotations of its first span, so that Phoenix can filter, plot
and compare by them.
"""

from collections.abc import Iterator
from hashlib import sha256

from components.turn import SHOWN
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.tracing.export import span_id
from tenants.desk.feedback import Feedback
from tenants.insight import traces


def annotations(answer: TurnAnswer) -> Iterator[dict[str, object]]:
    """Annotations for Phoenix's `POST /v1/span_annotations`; sending them twice stores them once."""
    yield _annotation(answer, "outcome", label=answer.outcome, explanation=answer.refusal_reason)
    yield _annotation(answer, "relevance", score=answer.scores.relevance)
    if answer.outcome not in SHOWN:
        return
    yield _annotation(answer, "confidence", score=answer.scores.confidence)
    yield _annotation(answer, "quality", score=answer.scores.quality / 100)
    factuality = answer.scores.factuality
    if factuality.status == "checked":
        yield _annotation(answer, "factuality", score=factuality.value / 100)


def thumb(verdict: Feedback) -> dict[str, object]:
    """Return the annotation of a verdict, one per person and turn; a later verdict replaces it. It identifies no person
    and contains no text, so there is no personal data to erase.
    """
    author = sha256(f"{verdict.turn_id}\x00{verdict.person}".encode()).hexdigest()[:16]
    # An empty explanation replaces an earlier one.
    result = {"label": verdict.thumb, "score": float(verdict.thumb == "up"), "explanation": verdict.reason or ""}
    return {
        "span_id": span_id(traces.trace_id(verdict.turn_id), 0),
        "name": "thumb",
        "annotator_kind": "HUMAN",
        "identifier": author,
        "result": result,
    }


def _annotation(answer: TurnAnswer, name: str, **result: str | float | None) -> dict[str, object]:
    return {
        "span_id": span_id(answer.trace_id, 0),
        "name": name,
        "annotator_kind": "CODE",
        "identifier": "opora",
        "result": {part: value for part, value in result.items() if value is not None},
    }
