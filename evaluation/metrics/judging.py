"""Judgement of a run by models: faithfulness, context relevance, and similarity to the right answer.

Faithfulness and context relevance are Haystack's evaluators, which ask a chat generator. Semantic similarity is the
cosine of two embeddings by any embedder that can search: Haystack's `SASEvaluator` needs sentence-transformers and
torch, many times the size of the product, to compute the same.

This module imports the libraries of models, so it is imported only where a judge is requested.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator
from haystack.components.generators.chat.types import ChatGenerator
from pydantic import BaseModel, ConfigDict, ValidationError

from components.embed.dense import passage_text
from components.embed.protocol import Embedder
from components.language.yaml_files import read_yaml
from components.models.calls import CallOutcome
from components.models.failures import outcome_of
from components.nested import from_description
from evaluation.cases import Record
from evaluation.metrics.answers import without_citations
from tenants.core.errors import Invalid

# An unknown class is reported in one line, like any other error in a file.
logging.getLogger("haystack.utils.type_serialization").setLevel(logging.CRITICAL)

_Role: TypeAlias = Literal["chat_generator", "embedder"]
_METRICS: Mapping[_Role, Sequence[tuple[str, str]]] = {
    "chat_generator": (("run", "messages"),),
    "embedder": (("question", "text"), ("run", "text")),
}
"""Method and argument to call for each role, in order of preference."""


class Judge:
    """Judges records with the given models; a figure whose model is missing is left out.

    :param chat_generator: for `faithfulness` and `context_relevance`. It must be configured to answer in JSON.
    :param embedder: for `semantic_similarity`.
    """

    def __init__(
        self, chat_generator: ChatGenerator | None = None, embedder: Embedder | TextEmbedder | None = None
    ) -> None:
        self._parts = {"chat_generator": chat_generator, "embedder": embedder}
        self._faithfulness = self._relevance = None
        if chat_generator is not None:
            # A record is asked about at a time and its failure caught here, by its kind: in a batch, a reply of the
            # wrong form can end the run, and failures are all the same NaN.
            self._faithfulness = FaithfulnessEvaluator(chat_generator=chat_generator, progress_bar=False)
            self._relevance = ContextRelevanceEvaluator(chat_generator=chat_generator, progress_bar=False)
        self._embedded = _embedding(embedder)
        for part in self._parts.values():
            _call(part, "warm_up")

    @property
    def names(self) -> Mapping[str, str]:
        """Return the engine and model of each judge, by role."""
        set_names = {role: part for role, part in self._parts.items() if part is not None}
        return {role: f"{type(part).__name__} {getattr(part, 'model', '')}".strip() for role, part in set_names.items()}

    def judged(
        self, records: Sequence[Record], concurrency: int, progress: Callable[[int, int], None]
    ) -> tuple[Record, ...]:
        """Return the records with the judgements of the models, in the same order.

        :param concurrency: number of records at once.
        :param progress: called with the number of finished records and the total.
        """
        judged_records = []
        with ThreadPoolExecutor(concurrency) as pool:
            for record in pool.map(self._judged, records):
                judged_records.append(record)
                progress(len(judged_records), len(records))
        return tuple(judged_records)

    def close(self) -> None:
        """Close the connections to the models. The next call opens them again."""
        for part in self._parts.values():
            _call(part, "close")

    def _judged(self, record: Record) -> Record:
        return replace(record, judged={name: _score(ask) for name, ask in self._questions(record)})

    def _questions(self, record: Record) -> Iterator[tuple[str, Callable[[], float]]]:
        """Yield the figures that apply to a record, each with a function that computes it."""
        case, answer = record.case, without_citations(record.text)
        inputs = {"questions": ["\n".join((*case.history, case.question))], "contexts": [_contexts(record)]}
        if self._faithfulness and record.shown:
            yield "faithfulness", partial(_share, self._faithfulness.run, **inputs, predicted_answers=[answer])
        # Passages found for a question without an answer are not relevant, and should not be.
        if self._relevance and record.passages and case.answerable is not False:
            yield "context_relevance", partial(_share, self._relevance.run, **inputs)
        gold = (case.gold_answer,) if case.gold_answer else case.gold_spans
        if self._embedded and record.shown and gold:
            yield "semantic_similarity", partial(_similarity, self._embedded, answer, gold)


def _contexts(record: Record) -> list[str]:
    """Return the judged passages, and the quotations of the answer besides them."""
    contexts = [passage_text(passage.title, passage.heading, passage.text) for passage in record.passages]
    quotes = (quote for sentence in record.sentences for quote in sentence.quotes if quote.genuine)
    excerpts = dict.fromkeys(quote.excerpt for quote in quotes)
    return [*contexts, *(excerpt for excerpt in excerpts if not any(excerpt in text for text in contexts))]


def _score(ask: Callable[[], float]) -> float | CallOutcome:
    """Return a judgement, or the kind of failure: an unavailable model, an invalid reply."""
    try:
        return round(ask(), 4)
    except Exception as fault:
        # Haystack wraps what a generator raises.
        return outcome_of(fault.__cause__ or fault)


def _share(run: Callable[..., Mapping[str, Sequence[float]]], **inputs: object) -> float:
    (score,) = run(**inputs)["individual_scores"]
    if not 0 <= score <= 1:
        raise ValueError(f"{score} is no share")
    return float(score)


def _similarity(embedded: Callable[[str], Sequence[float]], answer: str, gold: Sequence[str]) -> float:
    """Return the cosine of the answer and the nearest wording, -1..1."""
    answer_vector = np.asarray(embedded(answer))
    gold_vectors = [np.asarray(embedded(wording)) for wording in gold]
    if not all(np.any(vector) and np.all(np.isfinite(vector)) for vector in (answer_vector, *gold_vectors)):
        raise ValueError("a vector without a direction")
    return max(
        float(answer_vector @ other / (np.linalg.norm(answer_vector) * np.linalg.norm(other))) for other in gold_vectors
    )


def _embedding(embedder: object) -> Callable[[str], Sequence[float]] | None:
    """Return a function that embeds a text. Both texts are embedded as questions, as models require for comparison."""
    run = getattr(embedder, "run", None)
    of_haystack = (lambda text: run(text)["embedding"]) if run else None
    embedded: Callable[[str], Sequence[float]] | None = getattr(embedder, "question", of_haystack)
    return embedded


def _call(part: object, name: str) -> None:
    """Call a method such as `warm_up` or `close` if the part has it."""
    method = getattr(part, name, None)
    if method is not None:
        method()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: str
    init_parameters: dict[str, object] = {}


class _JudgeFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    chat_generator: _Part | None = None
    embedder: _Part | None = None


def read_judge(path: Path) -> Judge:
    """Read the judge of a YAML file: `chat_generator`, `embedder` or both, each `{type, init_parameters}`.

    :raises Invalid: `judge_unreadable`, `judge_empty`.
    """
    try:
        named = _JudgeFile.model_validate(read_yaml(path))
        judge = Judge(_component(named.chat_generator, "chat_generator"), _component(named.embedder, "embedder"))
    except ValidationError as unfit:
        first = unfit.errors()[0]
        fault = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise Invalid("judge_unreadable", path=str(path), fault=fault) from unfit
    except Exception as unfit:  # whatever a component raises on creation
        # The text after the first sentence is advice to programmers.
        fault = " ".join(str(unfit).split()).partition(". ")[0].rstrip(".")
        raise Invalid("judge_unreadable", path=str(path), fault=fault) from unfit
    if not judge.names:
        raise Invalid("judge_empty", path=str(path))
    return judge


def _component(part: _Part | None, role: _Role) -> Any:  # noqa: ANN401 - what it is, the file says
    """Build the component described in the file. Raises its constructor's errors, and `TypeError` for a wrong role."""
    if part is None:
        return None
    model = from_description(part.model_dump(), role)
    methods = ((getattr(model, name, None), argument) for name, argument in _METRICS[role])
    if not any(method and argument in signature(method).parameters for method, argument in methods):
        raise TypeError(f"{part.type} is no {role}")
    return model
