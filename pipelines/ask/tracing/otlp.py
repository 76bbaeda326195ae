"""Spans, and their encoding by the OpenTelemetry protocol (OTLP 1.x, protobuf).

Encoded straight from the published messages: the SDK makes spans only around code that runs, and here they are made
of turns that are over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Encoded

Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

_SCOPE = InstrumentationScope(name="opora")
_ID_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment: nanoseconds since 1970."""

    name: str
    at: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a turn. `parent` is the place of the span around it in the trace; the first span has none."""

    name: str
    started: int
    ended: int
    attributes: Attributes
    parent: int | None = 0
    events: Sequence[Event] = ()
    error: str | None = None


def span_id(trace_id: str, place: int) -> str:
    """The id of the span at a place of its trace: to be known long after the trace was sent, such as for feedback.

    Ids of traces are random, so those of spans made from their lower half are as good as random ones.
    """
    return f"{(int(trace_id, 16) & _ID_BITS) ^ place:016x}"


def encode(trace_id: str, spans: Sequence[Span], resource: Attributes) -> bytes:
    """A request that carries one trace. Requests joined end to end are one request that carries all of their traces."""
    made = [_span(trace_id, place, span) for place, span in enumerate(spans)]
    request = ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=_pairs(resource)),
                scope_spans=[ScopeSpans(scope=_SCOPE, spans=made)],
            )
        ]
    )
    encoded: bytes = request.SerializeToString()
    return encoded


def _span(trace_id: str, place: int, span: Span) -> Encoded:
    return Encoded(
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id(trace_id, place)),
        parent_span_id=b"" if span.parent is None else bytes.fromhex(span_id(trace_id, span.parent)),
        name=span.name,
        kind=Encoded.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.started,
        end_time_unix_nano=span.ended,
        attributes=_pairs(span.attributes),
        events=[
            Encoded.Event(name=event.name, time_unix_nano=event.at, attributes=_pairs(event.attributes))
            for event in span.events
        ],
        status=Status(code=Status.STATUS_CODE_OK)
        if span.error is None
        else Status(code=Status.STATUS_CODE_ERROR, message=span.error),
    )


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=one) for one in value]))
