"""Exports spans through OpenTelemetry's SDK: with their original times, batched, by OTLP over HTTP.

The providers are our own, never the global one, with which FastAPI and anything else that is instrumented would trace.
OpenInference names a span's project in its resource, and the resource belongs to the provider, so each tenant has a
provider; all of them share one processor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context

from pipelines.ask.tracing.span import Span, span_id

_SCOPE = "opora"
_QUEUE = 16_384
"""Spans; larger than a batch of traces, so that our own queue overflows first, by whole traces."""
_BATCH = 512
_SCHEDULE_MS = 1_000.0
_MAX_TENANTS = 1_000
_LIMITS = SpanLimits(max_span_attributes=10_000, max_events=1_000, max_event_attributes=1_000)
"""Above what a turn needs: the SDK drops attributes beyond its default of 128, and passages have more."""

_LATER = frozenset({408, 429})


class Unavailable(Exception):
    """The collector is unreachable or overloaded: the same request may succeed later."""


class Refused(Exception):
    """The collector will never accept this request."""


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of one trace, the root first."""

    trace_id: str
    spans: Sequence[Span]
    resource: Mapping[str, str]


class SpanExport:
    """Exports traces to a collector. For one thread.

    :param timeout: seconds for one request, including the exporter's own retries.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str], timeout: float) -> None:
        self._ids = _Ids()
        self._exporter = _WatchedExporter(endpoint, headers, timeout)
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=_QUEUE,
            max_export_batch_size=_BATCH,
            schedule_delay_millis=_SCHEDULE_MS,
        )
        self._tracer = lru_cache(_MAX_TENANTS)(self._new_tracer)

    def begin(self) -> None:
        """Begin a batch."""
        self._exporter.failure = None

    def add(self, trace: Spans) -> None:
        """Create the spans of one trace and hand them to the processor."""
        tracer = self._tracer(tuple(trace.resource.items()))
        self._ids.next_trace(trace.trace_id)
        started: list[OpenSpan] = []
        for span in trace.spans:
            around = Context() if span.parent is None else set_span_in_context(started[span.parent], Context())
            exported = tracer.start_span(span.name, around, attributes=span.attributes, start_time=span.started)
            for event in span.events:
                exported.add_event(event.name, event.attributes, event.at)
            exported.set_status(Status(StatusCode.OK) if span.error is None else Status(StatusCode.ERROR, span.error))
            started.append(exported)
        for exported, span in zip(started, trace.spans, strict=True):
            exported.end(span.ended)

    def flush(self) -> None:
        """Wait until everything added since `begin` is exported.

        :raises Unavailable: something was not exported. Adding everything again is safe: span ids are deterministic.
        :raises Refused: something never will be.
        """
        self._processor.force_flush()
        if self._exporter.failure is not None:
            raise self._exporter.failure

    def close(self) -> None:
        """Stop the processor's thread."""
        self._processor.shutdown()

    def _new_tracer(self, resource: tuple[tuple[str, str], ...]) -> Tracer:
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(dict(resource)),
            shutdown_on_exit=False,
            id_generator=self._ids,
            span_limits=_LIMITS,
        )
        provider.add_span_processor(self._processor)
        return provider.get_tracer(_SCOPE)


class _Ids(IdGenerator):
    """Ids known in advance: a trace's is its turn's, a span's follows from its place in the trace."""

    def __init__(self) -> None:
        self._trace_id = ""
        self._place = 0

    def next_trace(self, trace_id: str) -> None:
        """Assign the following spans to this trace, in order."""
        self._trace_id, self._place = trace_id, 0

    def generate_trace_id(self) -> int:
        """Called by the SDK."""
        return int(self._trace_id, 16)

    def generate_span_id(self) -> int:
        """Called by the SDK."""
        position, self._place = self._place, self._place + 1
        return int(span_id(self._trace_id, position), 16)


class _WatchedExporter(SpanExporter):
    """Remembers whether a batch was exported; `BatchSpanProcessor` drops failed batches without reporting."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], timeout: float) -> None:
        self.failure: Unavailable | Refused | None = None
        self._status: int | None = None
        session = requests.Session()
        # No proxies and no .netrc, which would replace the key.
        session.trust_env = False
        session.hooks["response"].append(self._note)
        self._exporter = OTLPSpanExporter(endpoint, headers=headers, timeout=timeout, session=session)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Called by the SDK."""
        self._status = None
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.failure = failure_of(self._status)
        return result

    def shutdown(self) -> None:
        """Called by the SDK."""
        self._exporter.shutdown()

    def _note(self, response: requests.Response, *_: object, **__: object) -> None:
        self._status = response.status_code


def failure_of(status: int | None) -> Unavailable | Refused:
    """Return the error for an unsuccessful response; `status` None: no response at all."""
    if status is None:
        return Unavailable("no answer")
    return Refused(str(status)) if status < 500 and status not in _LATER else Unavailable(str(status))
