"""Exported spans as received by a collector."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import pytest
from opentelemetry import trace as global_traces
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Received
from opentelemetry.sdk.trace import Event

from pipelines.ask.tracing.export import Refused, Span, SpanExport, Spans, Unavailable, Value, span_id
from tests.receiving import Receiver, receiving

Pairs: TypeAlias = dict[str, Value]

TRACE = "0123456789abcdef0123456789abcdef"
TIMEOUT = 0.7
"""Less than the exporter's pause before a retry."""


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def read(encoded: Sequence[KeyValue]) -> Pairs:
    pairs: Pairs = {}
    for pair in encoded:
        kind = pair.value.WhichOneof("value") or ""
        value = getattr(pair.value, kind)
        pairs[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return pairs


def export_traces(collector: Receiver, *traces: Spans) -> Mapping[str, ResourceSpans]:
    """Export traces; return the collector's spans by project."""
    export = SpanExport(collector.url, {}, 10)
    export.send(traces)
    export.close()
    request = ExportTraceServiceRequest.FromString(collector.next().body)
    return {str(read(around.resource.attributes)["project"]): around for around in request.resource_spans}


def received(around: ResourceSpans) -> dict[str, Received]:
    return {span.name: span for scope in around.scope_spans for span in scope.spans}


def trace(*spans: Span, trace_id: str = TRACE, project: str = "acme") -> Spans:
    return Spans(trace_id, spans, {"project": project})


def test_spans_keep_their_times_their_places_and_what_they_say(collector: Receiver) -> None:
    attributes: Pairs = {"text": "Да", "yes": True, "number": 2**40, "share": 0.5, "tags": ["a", "b"]}
    root = Span("ask", 5, 90, attributes, parent=None, events=[Event("pass", {"iteration": 1}, 7)])
    step = Span("answer", 10, 60, {}, error="raised")
    call = Span("answer · m", 20, 50, {}, parent=1)
    exported = received(export_traces(collector, trace(root, step, call))["acme"])
    ask, answer, model = exported["ask"], exported["answer"], exported["answer · m"]
    assert {span.trace_id.hex() for span in exported.values()} == {TRACE}
    assert [span.span_id.hex() for span in (ask, answer, model)] == [span_id(TRACE, place) for place in range(3)]
    assert [span.parent_span_id.hex() for span in (ask, answer, model)] == ["", span_id(TRACE, 0), span_id(TRACE, 1)]
    assert [(span.start_time_unix_nano, span.end_time_unix_nano) for span in (ask, answer, model)] == [
        (5, 90),
        (10, 60),
        (20, 50),
    ]
    assert read(ask.attributes) == attributes
    assert (ask.events[0].name, ask.events[0].time_unix_nano, read(ask.events[0].attributes)) == (
        "pass",
        7,
        {"iteration": 1},
    )
    assert (ask.status.code, answer.status.code, answer.status.message) == (1, 2, "raised")


def test_each_tenant_has_its_own_resource_whatever_order_they_come_in(collector: Receiver) -> None:
    span = Span("ask", 1, 2, {}, parent=None)
    ids = [f"{number:032x}" for number in range(1, 5)]
    projects = ["acme", "globex", "acme", "globex"]
    exported = export_traces(
        collector, *(trace(span, trace_id=one, project=project) for one, project in zip(ids, projects, strict=True))
    )
    for project in ("acme", "globex"):
        expected = {one for one, of in zip(ids, projects, strict=True) if of == project}
        assert {span.trace_id.hex() for scope in exported[project].scope_spans for span in scope.spans} == expected


def test_the_environment_drops_no_spans_and_sets_no_global_provider(
    collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    before = global_traces.get_tracer_provider()
    assert received(export_traces(collector, trace(Span("ask", 1, 2, {}, parent=None)))["acme"])
    assert global_traces.get_tracer_provider() is before


@pytest.mark.parametrize(
    ("status", "failure"), [(400, Refused), (401, Refused), (408, Unavailable), (429, Unavailable), (500, Unavailable)]
)
def test_a_failure_is_reported_and_the_next_batch_begins_anew(status: int, failure: type[Exception]) -> None:
    span = Span("ask", 1, 2, {}, parent=None)
    with receiving([status, 200]) as collector:
        export = SpanExport(collector.url, {}, TIMEOUT)
        with pytest.raises(failure, match=str(status)):
            export.send([trace(span)])
        export.send([trace(span)])
        export.close()


def test_a_batch_in_many_requests_fails_with_any_of_them() -> None:
    spans = [Span("ask", 1, 2, {}, parent=None), *(Span(str(place), 1, 2, {}) for place in range(1_500))]
    with receiving([200, 500]) as collector:
        export = SpanExport(collector.url, {}, TIMEOUT)
        with pytest.raises(Unavailable):
            export.send([trace(*spans)])
        export.close()
