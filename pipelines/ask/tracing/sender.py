"""Sends traces and verdicts in the background, without delaying any turn.

A turn hands over its trace and continues. No turn waits for the collector:
traces go to a bounded queue that drops the oldest, and sending pauses while the collector fails. Building
spans competes with questions for the interpreter, so it yields to them. Dropped traces are counted and logged.

Scores of turns and people's verdicts are annotations of the first span, so that Phoenix can filter, plot and compare by
them.
"""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

import httpx

from components.turn import SHOWN
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.tracing.export import Refused, SpanExport, Spans, Unavailable, failure_of, span_id
from pipelines.ask.tracing.spans import resource, spans
from pipelines.ask.tracing.trace import Trace
from settings import Settings
from tenants.audit import store
from tenants.audit.store import TurnOwner
from tenants.core import fairness
from tenants.core.background_loop import Repeating, Rest
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.desk.feedback import Feedback
from tenants.insight import traces

log = logging.getLogger("opora.traces")

PACE = 2.0
"""Seconds of gathering traces into a batch: a request costs as much as half a trace."""

BATCH = 32
"""Traces exported together, some 2 MB with content."""

WAITING = 256

TIMEOUT = 2.0
PAUSE = 30.0
"""Seconds before retrying a collector that did not answer."""

MAX_ATTEMPTS = 20
"""A batch that has failed this often, for ten minutes, is dropped: others wait behind it."""

_PARTING = 3.0
"""Seconds that `close` allows for the last traces."""


class Sender:
    """Takes traces and sends them. Thread-safe.

    :param settings: where to; `traces_to` must be set.
    """

    def __init__(self, settings: Settings) -> None:
        self._destination = _Destination(settings)
        self._waiting: deque[Trace | Feedback] = deque(maxlen=WAITING)
        self._batch: list[Trace | Feedback] = []
        self._attempts = 0
        self._dropped = 0
        self._in_trouble = False
        self._sending = Repeating(self._send_waiting, PACE)

    def start(self) -> None:
        self._sending.start()

    def take(self, item: Trace | Feedback) -> None:
        """Queue a trace or a verdict. Takes a microsecond and never raises."""
        if len(self._waiting) == WAITING:
            self._dropped += 1
        self._waiting.append(item)
        self._sending.wake()

    def close(self) -> None:
        """Stop after one more attempt to send what is queued, without waiting for a hanging collector."""
        if self._sending.close(_PARTING):
            self._destination.close()
        if unsent := self._dropped + len(self._batch) + len(self._waiting):
            log.warning("%d traces were not sent", unsent)

    def _send_waiting(self) -> float:
        return PAUSE if self._send_all() else Rest(PAUSE)

    def _send_all(self) -> bool:
        """Return whether the whole queue was sent. A batch that can be retried is kept."""
        while self._batch or self._waiting:
            self._batch = self._batch or [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._attempts += 1
            try:
                self._batch = _without_erased(self._batch)
                if self._batch:
                    self._destination.send(self._batch)
            except (Unavailable, TryAgain) as error:
                if not self._in_trouble:
                    log.warning("traces wait, their collector is unavailable: %s", error)
                self._in_trouble = True
                if self._attempts == MAX_ATTEMPTS:
                    self._drop("tried too often")
                return False
            except Exception as error:
                self._drop(f"refused: {error}" if isinstance(error, Refused) else trail(error))
                return False
            self._batch, self._attempts = [], 0
        if self._in_trouble or self._dropped:
            log.warning("traces are sent again, %d were dropped", self._dropped)
        self._in_trouble, self._dropped = False, 0
        return True

    def _drop(self, reason: str) -> None:
        log.error("%d traces are dropped: %s", len(self._batch), reason)
        self._dropped += len(self._batch)
        self._batch, self._attempts = [], 0


def _without_erased(batch: Sequence[Trace | Feedback]) -> list[Trace | Feedback]:
    """Leave out the traces of people who were erased while these waited. Raises `TryAgain`."""
    forgotten: dict[str, Sequence[tuple[TurnOwner, datetime]]] = {}
    for item in batch:
        if isinstance(item, Trace) and (item.person or item.session_id) and item.tenant_id not in forgotten:
            with acting_as(Tenant(item.tenant_id, "traces")):
                forgotten[item.tenant_id] = store.forgotten()

    def is_erased(item: Trace | Feedback) -> bool:
        return isinstance(item, Trace) and any(
            owner.covers(item.person, item.session_id) and item.asked_at <= until.timestamp() * 1e9
            for owner, until in forgotten.get(item.tenant_id, ())
        )

    return [item for item in batch if not is_erased(item)]


class _Destination:
    def __init__(self, settings: Settings) -> None:
        self._phoenix = traces.client(settings, TIMEOUT) if settings.phoenix_url else None
        key = settings.phoenix_api_key.get_secret_value()
        is_phoenix = bool(settings.phoenix_url) and settings.traces_to.startswith(settings.phoenix_url)
        headers = {"Authorization": f"Bearer {key}"} if key and is_phoenix else {}
        self._export = SpanExport(settings.traces_to, headers, TIMEOUT)

    def close(self) -> None:
        self._export.close()
        if self._phoenix is not None:
            self._phoenix.close()

    def send(self, batch: Sequence[Trace | Feedback]) -> None:
        """Send a batch. Idempotent. Raises `Unavailable` or `Refused`."""
        done = [item for item in batch if isinstance(item, Trace)]
        self._export.send([_spans(trace) for trace in done])
        if self._phoenix is not None:
            scores = [annotation for trace in done for annotation in _annotations(trace.answer)]
            # Phoenix does not define which of two verdicts of one person in a request it keeps.
            thumbs = {(item.turn_id, item.person): _thumb(item) for item in batch if isinstance(item, Feedback)}
            _post(self._phoenix, [*scores, *thumbs.values()])


def _spans(trace: Trace) -> Spans:
    fairness.yield_to_questions()
    return Spans(trace.answer.trace_id, spans(trace), resource(trace))


def _post(phoenix: httpx.Client, scores: Sequence[dict[str, object]]) -> None:
    try:
        answer = phoenix.post("/v1/span_annotations", json={"data": scores})
    except httpx.TransportError as error:
        raise Unavailable(type(error).__name__) from error
    if not answer.is_success:
        raise failure_of(answer.status_code)


def _annotations(answer: TurnAnswer) -> Iterator[dict[str, object]]:
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


def _thumb(verdict: Feedback) -> dict[str, object]:
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
