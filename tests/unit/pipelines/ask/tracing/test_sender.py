"""Sending of traces: accepted, queued and dropped ones, without delaying any caller."""

import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from components.turn import Reply
from pipelines.ask.answering import answer_of
from pipelines.ask.steps import Steps
from pipelines.ask.tracing import sender as sending
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.trace import Trace
from settings import Settings
from tenants.desk.feedback import Feedback, Thumb
from tests.receiving import Heard, receiving
from tests.turns import turn


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PACE", 0.0)
    monkeypatch.setattr(sending, "PAUSE", 0.01)
    # Less than the exporter's pause before a retry.
    monkeypatch.setattr(sending, "TIMEOUT", 0.7)


def traced(number: int) -> Trace:
    done = replace(turn("Как вернуть?"), outcome="answered", reply=Reply("Так."))
    answer = answer_of(done, trace_id=f"{number:032x}")
    asked = int(datetime.now(UTC).timestamp() * 1e9)
    return Trace("acme", "", "", asked, Steps(), answer, "digest", content=False)


def judged(person: str, thumb: Thumb) -> Feedback:
    """A verdict on the turn of `traced(1)`."""
    return Feedback(f"{1:032x}", person, "s", thumb, None, "Мне помогло", datetime.now(UTC))


def traces_in(received: Heard) -> list[int]:
    request = ExportTraceServiceRequest.FromString(received.body)
    return [
        int(span.trace_id.hex(), 16)
        for around in request.resource_spans
        for scope in around.scope_spans
        for span in scope.spans
        if not span.parent_span_id
    ]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "opora.traces"]


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}"


def test_traces_are_sent_with_their_scores() -> None:
    with receiving() as phoenix:
        sender = Sender(Settings(phoenix_url=phoenix.url, phoenix_api_key="secret"))
        sender.start()
        sender.take(traced(1))
        spans, scores = phoenix.next(), phoenix.next()
        sender.close()
    assert (spans.what, traces_in(spans)) == ("POST /v1/traces", [1])
    assert scores.what == "POST /v1/span_annotations"
    assert ("0000000000000001", "outcome") in [
        (item["span_id"], item["name"]) for item in json.loads(scores.body)["data"]
    ]


def test_thumbs_stand_at_the_turn_one_of_each_person_and_without_words() -> None:
    with receiving() as phoenix:
        sender = Sender(Settings(phoenix_url=phoenix.url))
        for item in (judged("anna", "down"), judged("anna", "up"), judged("bob", "down")):
            sender.take(item)
        sender.start()
        received = phoenix.next()
        sender.close()
    payload = json.loads(received.body)["data"]
    assert received.what == "POST /v1/span_annotations"
    assert {(item["span_id"], item["name"], item["annotator_kind"]) for item in payload} == {
        (f"{1:016x}", "thumb", "HUMAN")
    }
    assert [(item["result"]["label"], item["result"]["score"]) for item in payload] == [("up", 1), ("down", 0)]
    assert len({item["identifier"] for item in payload}) == 2
    assert not {"anna", "Мне помогло"} & set(json.dumps(payload, ensure_ascii=False).split('"'))


def test_another_collector_gets_no_scores() -> None:
    with receiving() as collector:
        sender = Sender(Settings(otlp_endpoint=f"{collector.url}/spans"))
        sender.take(judged("anna", "up"))
        sender.start()
        sender.take(traced(1))
        first = collector.next()
        sender.take(traced(2))
        assert [item.what for item in (first, collector.next())] == ["POST /spans"] * 2
        sender.close()


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_overloaded_collector_is_retried(status: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), receiving([status, status, 200]) as collector:
        sender = Sender(Settings(otlp_endpoint=collector.url))
        sender.take(traced(1))
        sender.start()
        assert [traces_in(collector.next()) for _ in range(3)] == [[1]] * 3
        sender.close()
    assert logged(caplog) == [
        f"traces wait, their collector is unavailable: {status}",
        "traces are sent again, 0 were dropped",
    ]


def test_a_refused_batch_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with receiving([401, 200]) as collector:
        sender = Sender(Settings(otlp_endpoint=collector.url))
        sender.take(traced(1))
        sender.start()
        assert traces_in(collector.next()) == [1]
        sender.take(traced(2))
        assert traces_in(collector.next()) == [2]
        sender.close()
    assert logged(caplog) == ["1 traces are dropped: refused: 401", "traces are sent again, 1 were dropped"]


def test_a_batch_that_fails_too_long_is_dropped(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MAX_ATTEMPTS", 2)
    monkeypatch.setattr(sending, "BATCH", 1)
    with receiving([500, 500, 200]) as collector:
        sender = Sender(Settings(otlp_endpoint=collector.url))
        sender.take(traced(1))
        sender.take(traced(2))
        sender.start()
        assert [traces_in(collector.next()) for _ in range(3)] == [[1], [1], [2]]
        sender.close()
    assert "1 traces are dropped: tried too often" in logged(caplog)


def test_a_full_queue_drops_the_oldest_traces(caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as collector:
        sender = Sender(Settings(otlp_endpoint=collector.url))
        for number in range(1, sending.WAITING + 11):
            sender.take(traced(number))
        sender.start()
        sent = [item for _ in range(sending.WAITING // sending.BATCH) for item in traces_in(collector.next())]
        sender.close()
    assert sent == list(range(11, sending.WAITING + 11))
    assert logged(caplog) == ["traces are sent again, 10 were dropped"]


def test_an_unreachable_collector_keeps_traces_queued_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as collector:
        url = collector.url
    sender = Sender(Settings(otlp_endpoint=url))
    sender.start()
    sender.take(traced(1))
    sender.close()
    assert logged(caplog) == ["traces wait, their collector is unavailable: no answer", "1 traces were not sent"]


def test_a_hanging_collector_delays_nobody(
    nobody: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT", 0.05)
    sender = Sender(Settings(otlp_endpoint=nobody))
    sender.start()
    single_trace = traced(1)
    for _ in range(2_000):
        sender.take(single_trace)
    sender.close()
    assert "traces were not sent" in caplog.text


def test_the_key_is_phoenix_s_alone() -> None:
    for endpoint, sent in (("", True), ("/elsewhere", False)):
        with receiving() as phoenix, receiving() as other:
            settings = Settings(
                phoenix_url=phoenix.url,
                phoenix_api_key="secret",
                otlp_endpoint=f"{other.url}{endpoint}" if endpoint else "",
            )
            sender = Sender(settings)
            sender.take(traced(1))
            sender.start()
            received = (other if endpoint else phoenix).next()
            sender.close()
        assert (received.headers.get("authorization") == "Bearer secret") is sent
