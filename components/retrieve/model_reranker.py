"""The final order of passages by a model that reads each of them together with the question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, Literal, Protocol, TypeAlias

from haystack import Document, component, default_to_dict
from haystack.core.serialization import component_to_dict

from components.embed.dense import passage_text
from components.judge.calibration import Line, calibrations, log_odds
from components.judge.ranked import SCORE
from components.models.attempts import attempt
from components.models.breaker import Upstream
from components.models.failures import ModelFailed
from components.retrieve.cache import TenantLruCache
from components.retrieve.reranker import FeatureReranker
from components.turn import Passage, Turn

CONCURRENT = 32
"""Calls of one ranker at once; those that were given up count until they end."""

Scale: TypeAlias = Literal["log-odds", "probability", "order"]

_IDENTITY = Line(1.0, 0.0)


class Ranker(Protocol):
    """Any Haystack ranker that reads the question: it answers with the documents, best first."""

    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """:returns: `{"documents": [...]}`."""


@component
class ModelReranker:
    """Orders the evidence by a ranker's scores, made probabilities, and the trust its documents have earned.

    A passage is read once; those beyond `depth` come after the others. A ranker that gives an order alone, as
    `LLMRanker` does, changes places and no score: the first passage gets the best of their scores, and so on. When the
    ranker fails, or takes half of the time that the turn has left, the order by features (`FeatureReranker`) stands in
    and the turn is degraded.

    :param ranker: `components.retrieve.cross_encoder.FastCrossEncoder`, or any Haystack ranker.
    :param scale: what its scores are; `order`: it gives none.
    :param calibration: the entry of `components/judge/calibration.json` that was fitted for the model; empty takes the
        scores as they are.
    :param depth: passages read in a pass, best first by search.
    :param trust_weight: factor on the trust part, as for `FeatureReranker`.
    :param cache_size: readings cached by question and passages; 0 disables the cache.
    :param failures: failures in a row, until the ranker is left alone and the order by features stands in.
    :param pause: seconds that it is left alone for.
    """

    def __init__(
        self,
        ranker: Ranker,
        scale: Scale = "log-odds",
        calibration: str = "",
        depth: int = 20,
        trust_weight: float = 0.5,
        cache_size: int = 500,
        failures: int = 3,
        pause: float = 30,
    ) -> None:
        self.ranker = ranker
        self.scale = scale
        self.calibration = calibration
        self.depth = depth
        self.trust_weight = trust_weight
        self.cache_size = cache_size
        self._features = FeatureReranker(trust_weight)
        self._calibrations = calibrations(calibration) if calibration else None
        self.failures = failures
        self.pause = pause
        self._upstream = Upstream(failures, pause, CONCURRENT)
        self._readings: TenantLruCache[Mapping[str, float]] = TenantLruCache(cache_size)

    def to_dict(self) -> dict[str, Any]:
        """For Haystack: the constructor's arguments. Not every stock ranker has a form of its own."""
        return default_to_dict(
            self,
            ranker=component_to_dict(self.ranker, "ranker"),
            scale=self.scale,
            calibration=self.calibration,
            depth=self.depth,
            trust_weight=self.trust_weight,
            cache_size=self.cache_size,
            failures=self.failures,
            pause=self.pause,
        )

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its passages in final order, `scores` naming each part of `score`."""
        ordered: Turn = self._features.run(turn)["turn"]
        by_order = self.scale == "order"
        passages = self._by_order(ordered) if by_order else self._by_scores(ordered)
        if passages is None:
            return {"turn": ordered.degraded_at("reranker")}
        return {"turn": replace(ordered, evidence=replace(ordered.evidence, passages=tuple(passages)))}

    def _by_scores(self, turn: Turn) -> list[Passage] | None:
        new = [passage for passage in turn.evidence.passages if SCORE not in passage.scores]
        new.sort(key=lambda passage: -passage.scores["search"])
        read = self._read(turn.query.search, new[: self.depth], self._log_odds)
        if read is None:
            return None
        scored = [self._scored(passage, read.get(passage.chunk_id)) for passage in turn.evidence.passages]
        return sorted(
            scored, key=lambda passage: (SCORE not in passage.scores, -passage.score, -passage.scores["search"])
        )

    def _by_order(self, turn: Turn) -> list[Passage] | None:
        head, tail = turn.evidence.passages[: self.depth], turn.evidence.passages[self.depth :]
        read = self._read(turn.query.search, head, lambda _: 0.0)
        if read is None:
            return None
        places = {chunk_id: place for place, chunk_id in enumerate(read)}
        reordered = sorted(head, key=lambda passage: places.get(passage.chunk_id, len(places)))
        scores = [passage.score for passage in head]
        return [*(replace(passage, score=score) for passage, score in zip(reordered, scores, strict=True)), *tail]

    def _read(
        self, question: str, passages: Sequence[Passage], score: Callable[[float | None], float]
    ) -> Mapping[str, float] | None:
        """What the ranker makes of passages, by chunk and best first; None when it failed."""
        if not passages:
            return {}
        texts = {passage.chunk_id: passage_text(passage.title, passage.heading, passage.text) for passage in passages}
        key = self._readings.key(question, texts)
        cached = self._readings.get(key)
        if cached is not None:
            return cached

        def ranked() -> Mapping[str, float]:
            documents = [Document(id=chunk_id, content=text) for chunk_id, text in texts.items()]
            ranked_documents: list[Document] = self.ranker.run(query=question, documents=documents)["documents"]
            return {document.id: score(document.score) for document in ranked_documents}

        try:
            read = attempt("ranker", self._upstream, ranked)
        except ModelFailed:
            return None
        self._readings.put(key, read)
        return read

    def _log_odds(self, score: float | None) -> float:
        if score is None or not isfinite(score):
            raise ValueError("a document without a score")
        return score if self.scale == "log-odds" else log_odds(score)

    def _scored(self, passage: Passage, model_score: float | None) -> Passage:
        trust = passage.scores["trust"]
        if model_score is not None:
            relevance = self._line(passage.lang).probability(model_score)
            scores = {**passage.scores, SCORE: relevance, f"{SCORE}-log-odds": model_score}
            return replace(passage, score=relevance + trust, scores=scores)
        return replace(passage, score=passage.scores.get(SCORE, 0.0) + trust)

    def _line(self, language: str) -> Line:
        return self._calibrations.of(language).relevance if self._calibrations else _IDENTITY
