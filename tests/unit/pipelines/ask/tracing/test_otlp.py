"""Spans as they go over the wire."""

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from pipelines.ask.tracing.otlp import Event, Span, Value, encode, span_id

Pairs: TypeAlias = dict[str, Value]

TRACE = "0123456789abcdef0123456789abcdef"
letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(letters, st.booleans(), numbers, st.floats(allow_nan=False), st.lists(letters, min_size=1))
pairs = st.dictionaries(letters, values, max_size=5)


def read(encoded: list[KeyValue]) -> Pairs:
    found: Pairs = {}
    for pair in encoded:
        kind = pair.value.WhichOneof("value") or ""
        value = getattr(pair.value, kind)
        found[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found


@given(st.lists(pairs, min_size=1, max_size=4), pairs)
def test_what_is_encoded_is_read_again(told: list[Pairs], resource: Pairs) -> None:
    events = [Event("pass", 7, told[0])]
    made = [
        Span(f"step {place}", 5, 9, attributes, parent=None if not place else 0, events=events, error=None)
        for place, attributes in enumerate(told)
    ]
    request = ExportTraceServiceRequest.FromString(encode(TRACE, made, resource))
    (around,) = request.resource_spans
    assert read(list(around.resource.attributes)) == resource
    found = list(around.scope_spans[0].spans)
    assert [read(list(span.attributes)) for span in found] == told
    assert [span.trace_id.hex() for span in found] == [TRACE] * len(told)
    assert read(list(found[0].events[0].attributes)) == told[0]
    assert [span.parent_span_id.hex() for span in found] == ["", *[span_id(TRACE, 0)] * (len(told) - 1)]


@given(st.integers(1, 2**128 - 1), st.integers(0, 500), st.integers(0, 500))
def test_places_have_ids_of_their_own(trace: int, one: int, other: int) -> None:
    ids = span_id(f"{trace:032x}", one), span_id(f"{trace:032x}", other)
    assert len(ids[0]) == 16
    assert (ids[0] == ids[1]) is (one == other)


def test_requests_joined_are_one_request() -> None:
    span = Span("ask", 1, 2, {}, parent=None, error="timeout")
    joined = ExportTraceServiceRequest.FromString(encode(TRACE, [span], {}) + encode("f" * 32, [span], {}))
    traced = [around.scope_spans[0].spans[0] for around in joined.resource_spans]
    assert [one.trace_id.hex() for one in traced] == [TRACE, "f" * 32]
    assert {one.status.message for one in traced} == {"timeout"}
