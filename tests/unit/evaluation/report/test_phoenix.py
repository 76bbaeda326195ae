"""Publication of a run to Phoenix: cases, answers, figures, and the trace of each."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from evaluation.cases import Case, Record
from evaluation.report.phoenix import publish
from evaluation.stored_runs import Run, SetRun, State
from settings import get_settings
from tenants.core.errors import TryAgain
from tests.receiving import Receiver, receiving

CASES = (
    Case("one", "Как вернуть?", answerable=True, gold_docs=("returns.md",)),
    Case("two", "Зачем?", answerable=False),
)
RECORDS = (
    Record(CASES[0], "answered", ranked=("returns.md",), score=0.9, milliseconds=12.0, trace_id="a" * 32),
    Record(CASES[1], "refused", reason="no_relevant_context", score=float("nan")),
)
RUN = Run(
    "20260101T000000-shop",
    datetime(2026, 1, 1, tzinfo=UTC),
    State("1.0+abc", "digest", "", {}, {"index": "embedded"}),
    (SetRun("shop", "ru", 1.0, records=RECORDS), SetRun("wice", "en", 1.0)),
)
ANSWERS = {
    "/v1/datasets/upload": {"dataset_id": "D", "version_id": "V"},
    "/v1/datasets/D/examples": {"examples": [{"id": "one", "node_id": "N1"}, {"id": "two", "node_id": "N2"}]},
    "/v1/datasets/D/experiments": {"id": "E"},
    "/v1/experiments/E/runs": {"id": "R"},
    "/v1/experiment_evaluations": {"id": "X"},
}


def received(phoenix: Receiver) -> list[tuple[str, dict[str, object]]]:
    results = [phoenix.heard.get() for _ in range(phoenix.heard.qsize())]
    return [(one.what, json.loads(one.body or b"{}")) for one in results]


@pytest.fixture
def phoenix(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    bodies = {path: json.dumps({"data": answer}).encode() for path, answer in ANSWERS.items()}
    with receiving(bodies=bodies) as receiver:
        monkeypatch.setenv("OPORA_PHOENIX_URL", receiver.url)
        get_settings.cache_clear()
        yield receiver
    get_settings.cache_clear()


def test_a_run_becomes_an_experiment_with_traces_and_scores(phoenix: Receiver) -> None:
    (published,) = publish(RUN, lambda *done: None)
    assert (published.name, published.runs, published.traced) == ("shop", 2, 1)
    assert published.url.endswith("/datasets/D/compare?experimentId=E")
    requests = received(phoenix)
    dataset = requests[0][1]
    assert (dataset["action"], dataset["name"], dataset["example_ids"]) == ("update", "opora shop", ["one", "two"])
    assert dataset["outputs"] == [{"answerable": True, "documents": ["returns.md"]}, {"answerable": False}]
    assert requests[2][1]["name"] == RUN.run_id
    runs = [body for what, body in requests if what == "POST /v1/experiments/E/runs"]
    assert [(run["dataset_example_id"], run["trace_id"]) for run in runs] == [("N1", "a" * 32), ("N2", None)]
    scores = [(body["name"], body["result"]) for what, body in requests if what == "POST /v1/experiment_evaluations"]
    assert ("hit@5", {"score": 1.0}) in scores
    # NaN would be refused.
    assert [name for name, _ in scores].count("relevance") == 1


def test_a_failing_phoenix_is_reported_as_such(phoenix: Receiver) -> None:
    phoenix.statuses = [500]
    with pytest.raises(TryAgain):
        publish(RUN, lambda *done: None)
