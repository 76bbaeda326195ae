"""Exports the spans of finished turns by OTLP over HTTP, with their original times.

The spans are complete before OpenTelemetry's SDK sees them, so there is no tracer, no provider and no processor: the
exporter gets them directly. No global tracer is set, so instrumented libraries such as FastAPI do not trace.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from tenants.core.batches import batches

Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

_SCOPE = InstrumentationScope("opora")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_BATCH = 512
_LATER = frozenset({408, 429})
_ID_BITS = (1 << 64) - 1


class Unavailable(Exception):
    """The collector is unreachable or overloaded: the same request may succeed later."""


class Refused(Exception):
    """The collector will never accept this request."""


@dataclass(frozen=True, slots=True)
class Span:
    """A period of a turn. `parent` is the position of the enclosing span in the trace; the first span has none."""

    name: str
    started: int
    ended: int
    attributes: Attributes
    parent: int | None = 0
    events: Sequence[Event] = ()
    error: str | None = None


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
        self._status: int | None = None
        session = requests.Session()
        # No proxies and no .netrc, which would replace the key.
        session.trust_env = False
        session.hooks["response"].append(self._note)
        self._exporter = OTLPSpanExporter(endpoint, headers=headers, timeout=timeout, session=session)

    def send(self, traces: Sequence[Spans]) -> None:
        """Send the spans of these traces.

        :raises Unavailable: something was not sent. Sending everything again is safe: span ids are deterministic.
        :raises Refused: something never will be.
        """
        for batch in batches(chain.from_iterable(map(_finished, traces)), _BATCH):
            self._status = None
            if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
                raise failure_of(self._status)

    def close(self) -> None:
        self._exporter.shutdown()

    def _note(self, response: requests.Response, *_: object, **__: object) -> None:
        self._status = response.status_code


def _finished(trace: Spans) -> Iterator[ReadableSpan]:
    resource = Resource(dict(trace.resource))
    for position, span in enumerate(trace.spans):
        yield ReadableSpan(
            span.name,
            context=_context(trace.trace_id, position),
            parent=None if span.parent is None else _context(trace.trace_id, span.parent),
            resource=resource,
            attributes=span.attributes,
            events=span.events,
            status=Status(StatusCode.OK) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.started,
            end_time=span.ended,
            instrumentation_scope=_SCOPE,
        )


def _context(trace_id: str, position: int) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id(trace_id, position), 16), is_remote=False, trace_flags=_SAMPLED)


def span_id(trace_id: str, position: int) -> str:
    """Compute the id of a span from its position in the trace, even long after sending, such as for feedback.

    Trace ids are random, so span ids derived from their lower half are as good as random ones.
    """
    return f"{(int(trace_id, 16) & _ID_BITS) ^ position:016x}"


def failure_of(status: int | None) -> Unavailable | Refused:
    """Return the error for an unsuccessful response; `status` None: no response at all."""
    if status is None:
        return Unavailable("no answer")
    return Refused(str(status)) if status < 500 and status not in _LATER else Unavailable(str(status))
