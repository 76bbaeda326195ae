"""Runs of the evaluation in Phoenix: each set as a data set, the run as an experiment on it, every case with its trace.

A set keeps its cases by their ids, so publishing it again makes a new version only of what has changed, and experiments
on it can be compared. One evaluation is logged for each figure of a case that `evaluation.metrics.results` works out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx

from evaluation.cases import Case, Record
from evaluation.measurement import Progress
from evaluation.metrics.intervals import Marks
from evaluation.metrics.results import marks
from evaluation.stored_runs import Run, SetRun
from tenants.insight import traces


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """A set in Phoenix: number of cases in the experiment, and number of those linked to traces."""

    name: str
    dataset_id: str
    experiment_id: str
    runs: int
    traced: int
    url: str


def publish(run: Run, progress: Progress) -> list[PublishedSet]:
    """Bring a run into the Phoenix that is set; sets of claims are left out.

    :raises TryAgain: Phoenix does not answer.
    """
    with traces.phoenix() as client:
        return [_publish_set(client, run, set_run, progress) for set_run in run.sets if set_run.records]


def _publish_set(client: httpx.Client, run: Run, set_run: SetRun, progress: Progress) -> PublishedSet:
    dataset = _post(client, "datasets/upload?sync=true", _as_dataset(set_run))
    dataset_id, version = dataset["dataset_id"], {"version_id": dataset["version_id"]}
    listed = _data(client.get(f"/v1/datasets/{dataset_id}/examples", params=version))
    nodes = {example["id"]: example["node_id"] for example in listed["examples"]}
    metadata = {"code": run.state.code, "pipeline": run.state.pipeline, **run.state.settings}
    about = {"name": run.run_id, "metadata": metadata, **version}
    experiment = _post(client, f"datasets/{dataset_id}/experiments", about)["id"]
    counted = marks(set_run, run.by_name())
    for count, record in enumerate(set_run.records, 1):
        times = _times(run, record)
        body = {
            "dataset_example_id": nodes[record.case.case_id],
            "output": _output(record),
            "repetition_number": 1,
            "trace_id": record.trace_id or None,
            **times,
        }
        posted = _post(client, f"experiments/{experiment}/runs", body)["id"]
        for name, score in _scores(record, counted[record.case.case_id]).items():
            kind = "LLM" if name in record.judged else "CODE"
            evaluation = {"experiment_run_id": posted, "name": name, "annotator_kind": kind, **times}
            _post(client, "experiment_evaluations", evaluation | {"result": {"score": score}})
        progress(set_run.name, count, len(set_run.records))
    url = client.base_url.join(f"/datasets/{dataset_id}/compare?experimentId={experiment}")
    traced = sum(bool(record.trace_id) for record in set_run.records)
    return PublishedSet(set_run.name, dataset_id, experiment, len(set_run.records), traced, str(url))


def _as_dataset(set_run: SetRun) -> dict[str, object]:
    cases = [record.case for record in set_run.records]
    return {
        "action": "update",
        "name": f"opora {set_run.name}",
        "inputs": [{"question": case.question, "history": case.history} for case in cases],
        "outputs": [_expected(case) for case in cases],
        "metadata": [{"locale": case.locale, "category": case.category, "tags": case.tags} for case in cases],
        "example_ids": [case.case_id for case in cases],
    }


def _expected(case: Case) -> dict[str, object]:
    expectations = {
        "answerable": case.answerable,
        "outcome": case.outcome,
        "reason": case.reason,
        "answer": case.gold_answer,
        "documents": case.gold_docs,
        "spans": case.gold_spans,
        "must_contain": case.must_contain,
        "must_not_contain": case.must_not_contain,
    }
    return {name: value for name, value in expectations.items() if value not in (None, "", ())}


def _output(record: Record) -> dict[str, object]:
    return {
        "outcome": record.outcome,
        "reason": record.reason,
        "answer": record.text,
        "documents": record.ranked,
        "passes": record.passes,
        "degraded": record.degraded,
    }


def _scores(record: Record, counted: Marks) -> dict[str, float]:
    """Return the figures that the case contributes to; Phoenix accepts only finite numbers."""
    scores = {name: total / weight for name, (total, weight) in counted.items() if weight}
    scores |= {"relevance": record.score, "confidence": record.confidence}
    return {name: score for name, score in scores.items() if math.isfinite(score)}


def _times(run: Run, record: Record) -> dict[str, str]:
    """Return start and end; runs store the duration of a case, not its time."""
    ended = run.created_at + timedelta(milliseconds=record.milliseconds)
    return {"start_time": run.created_at.isoformat(), "end_time": ended.isoformat()}


def _post(client: httpx.Client, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    return _data(client.post(f"/v1/{path}", json=body))


def _data(answer: httpx.Response) -> dict[str, Any]:
    data: dict[str, Any] = answer.raise_for_status().json()["data"]
    return data
