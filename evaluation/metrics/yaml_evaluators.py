"""Evaluators of a Haystack pipeline that a YAML file adds to a measurement.

`components` of the file are evaluators, each under the name of its figure. A case is given to an evaluator if it has
everything that the evaluator takes. Cases are evaluated one at a time, so that a failure costs a single score and its
kind is known; in a batch a model's malformed reply can end the run.

This module imports the libraries of models, so it is imported only where a file is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from haystack import Document, Pipeline

from components.embed.dense import passage_text
from components.language.yaml_files import read_yaml
from components.models.calls import CallOutcome
from components.models.failures import failure_of
from evaluation.asking import concurrently
from evaluation.cases import Record
from evaluation.metrics.built_in import GROUPS
from evaluation.metrics.text_checks import without_citations
from pipelines.definition import ALLOWED_MODULES, reason
from tenants.core.errors import Invalid

_TAKEN = frozenset({"evaluator_failed", *(name for names in GROUPS.values() for name in names)})

Input: TypeAlias = Callable[[Record], Any]


def _answer(record: Record) -> str | None:
    return without_citations(record.text) if record.shown else None


def _contexts(record: Record) -> list[str] | None:
    """Return the judged passages, and the quotations of the answer besides them."""
    contexts = [passage_text(passage.title, passage.heading, passage.text) for passage in record.passages]
    quotes = (quote for sentence in record.sentences for quote in sentence.quotes if quote.genuine)
    excerpts = dict.fromkeys(quote.excerpt for quote in quotes)
    return [*contexts, *(excerpt for excerpt in excerpts if not any(excerpt in text for text in contexts))] or None


def _documents(doc_ids: Sequence[str]) -> list[Document] | None:
    return [Document(id=doc_id, content=doc_id, meta={"doc_id": doc_id}) for doc_id in doc_ids] or None


INPUTS: Mapping[str, Input] = MappingProxyType(
    {
        "questions": lambda record: "\n".join((*record.case.history, record.case.question)),
        "contexts": _contexts,
        "predicted_answers": _answer,
        "responses": _answer,
        "ground_truth_answers": lambda record: record.case.gold_answer or next(iter(record.case.gold_spans), None),
        "retrieved_documents": lambda record: _documents(record.ranked),
        "ground_truth_documents": lambda record: _documents(record.case.gold_docs),
    }
)
"""Sockets that an evaluator may have: the value of a case, None if it has none. `responses` is the name of the answer
in evaluators of DeepEval; documents can be compared by any field, because each is the id of the article."""

_OF_THE_ANSWER = frozenset({"predicted_answers", "responses"})


class AddedEvaluators:
    """Run the evaluators of a pipeline on records.

    :param pipeline: evaluators by name, without connections.
    :raises ValueError: a connection, a taken name, or a socket that no case can fill.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._evaluators = dict(pipeline.walk())
        self._inputs = {
            name: [socket for socket, described in sockets.items() if described["is_mandatory"]]
            for name, sockets in pipeline.inputs().items()
        }
        if pipeline.graph.edges:
            raise ValueError("evaluators are not connected to each other")
        for name, inputs in self._inputs.items():
            if name in _TAKEN:
                raise ValueError(f"{name} is a figure already")
            if unknown := [one for one in inputs if one not in INPUTS]:
                raise ValueError(f"{name} takes {', '.join(unknown)}; available: {', '.join(INPUTS)}")
        for evaluator in self._evaluators.values():
            if hasattr(evaluator, "progress_bar"):
                evaluator.progress_bar = False
        pipeline.warm_up()

    @property
    def names(self) -> Mapping[str, str]:
        """Return the class and the model of each evaluator, by figure."""
        return {name: " ".join(_described(evaluator)) for name, evaluator in self._evaluators.items()}

    def judged(
        self, records: Sequence[Record], concurrency: int, progress: Callable[[int, int], None]
    ) -> tuple[Record, ...]:
        """Return the records with their scores, in the same order."""
        return tuple(concurrently(self._judged, records, concurrency, progress))

    def close(self) -> None:
        for evaluator in self._evaluators.values():
            if hasattr(evaluator, "close"):
                evaluator.close()

    def _judged(self, record: Record) -> Record:
        scores: dict[str, float | CallOutcome] = {}
        for name, evaluator in self._evaluators.items():
            inputs = _inputs(record, self._inputs[name])
            if inputs is not None:
                scores |= _scores(name, evaluator, inputs)
        return replace(record, judged=scores)


def read_evaluators(path: Path) -> AddedEvaluators:
    """Read the evaluators of a YAML file, in the form of a Haystack pipeline.

    :raises Invalid: `evaluators_unreadable`, `evaluators_empty`.
    """
    try:
        described = read_yaml(path)
        if not described.get("components"):
            raise Invalid("evaluators_empty", path=str(path))
        return AddedEvaluators(Pipeline.from_dict(described, allowed_modules=ALLOWED_MODULES))
    except Invalid:
        raise
    except Exception as unfit:  # whatever a component raises on creation
        raise Invalid("evaluators_unreadable", path=str(path), fault=reason(unfit)) from unfit


def _inputs(record: Record, sockets: Sequence[str]) -> dict[str, list[Any]] | None:
    """Return a case as a batch of one; None if it lacks an input.

    The passages found for a question without an answer are not relevant, and should not be.
    """
    if record.case.answerable is False and _OF_THE_ANSWER.isdisjoint(sockets):
        return None
    values = {name: INPUTS[name](record) for name in sockets}
    if any(value is None for value in values.values()):
        return None
    return {name: [value] for name, value in values.items()}


def _scores(name: str, evaluator: Any, inputs: Mapping[str, list[Any]]) -> dict[str, float | CallOutcome]:  # noqa: ANN401
    """Return an evaluator's scores by figure, or the kind of failure: an unavailable model, an invalid reply."""
    try:
        return {figure: _checked(score) for figure, score in _read(name, evaluator.run(**inputs)).items()}
    except Exception as fault:
        # Haystack wraps what a generator raises.
        return {name: failure_of(fault.__cause__ or fault).outcome}


def _read(name: str, output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of one case in any form that Haystack's evaluators and their integrations have.

    `individual_scores` of most evaluators, `results` of `LLMEvaluator` (a dictionary with its outputs) and of
    DeepEval (a list of dictionaries, each with the name of a metric).
    """
    if "individual_scores" in output:
        (score,) = output["individual_scores"]
        if not -1 <= score <= 1:
            raise ValueError(f"{score} is no share")
        return {name: score}
    (result,) = output["results"]
    if isinstance(result, list):
        return {f"{name}:{metric['name']}" if len(result) > 1 else name: metric["score"] for metric in result}
    numbers = {key: value for key, value in result.items() if isinstance(value, int | float)}
    return {f"{name}:{key}" if len(numbers) > 1 else name: value for key, value in numbers.items()} or {name: None}


def _checked(score: Any) -> float:  # noqa: ANN401 - a model wrote it
    if isinstance(score, str) or not isfinite(score):
        raise ValueError(f"{score} is no score")
    return round(float(score), 4)


def _described(evaluator: Any) -> list[str]:  # noqa: ANN401 - any component
    models: list[str] = []

    def collect(node: object) -> None:
        if isinstance(node, Mapping):
            models.extend(str(value) for key, value in node.items() if key == "model" and value)
            for value in node.values():
                collect(value)

    collect(evaluator.to_dict() if hasattr(evaluator, "to_dict") else {})
    return [type(evaluator).__name__, *dict.fromkeys(models)]
