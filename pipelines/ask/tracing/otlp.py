"""Spans, and their encoding by the OpenTelemetry protocol (OTLP 1.x, protobuf).

Encoded straight from the published messages: the SDK makes spans only around code that runs, and here they are made
of turns that are over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Encoded
from opentelemetry.proto.trace.v1.trace_pb2 import Status

Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

_SCOPE = "opora"
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
    request = ExportTraceServiceRequest()
    around = request.resource_spans.add()
    _fill(around.resource.attributes, resource)
    scope = around.scope_spans.add()
    scope.scope.name = _SCOPE
    for place, span in enumerate(spans):
        _span(scope.spans.add(), trace_id, place, span)
    encoded: bytes = request.SerializeToString()
    return encoded


class _Pairs(Protocol):
    def add(self) -> KeyValue:
        """One more, to be filled."""


# Messages are filled where they stand: handing over finished ones copies each, which takes four times as long.
def _span(encoded: Encoded, trace_id: str, place: int, span: Span) -> None:
    encoded.trace_id = bytes.fromhex(trace_id)
    encoded.span_id = bytes.fromhex(span_id(trace_id, place))
    if span.parent is not None:
        encoded.parent_span_id = bytes.fromhex(span_id(trace_id, span.parent))
    encoded.name = span.name
    encoded.kind = Encoded.SPAN_KIND_INTERNAL
    encoded.start_time_unix_nano = span.started
    encoded.end_time_unix_nano = span.ended
    _fill(encoded.attributes, span.attributes)
    for event in span.events:
        told = encoded.events.add()
        told.name = event.name
        told.time_unix_nano = event.at
        _fill(told.attributes, event.attributes)
    encoded.status.code = Status.STATUS_CODE_OK if span.error is None else Status.STATUS_CODE_ERROR
    if span.error is not None:
        encoded.status.message = span.error


def _fill(pairs: _Pairs, attributes: Attributes) -> None:
    for name, value in attributes.items():
        pair = pairs.add()
        pair.key = name
        if isinstance(value, str):
            pair.value.string_value = value
        elif isinstance(value, bool):
            pair.value.bool_value = value
        elif isinstance(value, int):
            pair.value.int_value = value
        elif isinstance(value, float):
            pair.value.double_value = value
        else:
            for one in value:
                pair.value.array_value.values.add().string_value = one
