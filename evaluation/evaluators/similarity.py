"""Similarity of an answer to the right one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from haystack import component, default_to_dict


@component
class SemanticSimilarityEvaluator:
    """Score answers by the cosine of their embedding and that of the nearest right wording, -1..1.

    Takes any text embedder of Haystack, or one of `components.embed`. Haystack's `SASEvaluator` computes the same, but
    needs sentence-transformers and torch, which are many times the size of the product.

    :param embedder: embeds both texts as questions, as models require for comparison.

    ```python
    SemanticSimilarityEvaluator(embedder=OllamaTextEmbedder("bge-m3")).run(
        predicted_answers=["It takes two weeks."], acceptable_answers=[["14 days", "two weeks"]]
    )["score"]
    ```
    """

    def __init__(self, embedder: Any) -> None:  # noqa: ANN401 - Haystack's protocol or our own
        self.embedder = embedder
        self._embed = _embed_with(embedder)

    def to_dict(self) -> dict[str, Any]:
        """Serialise the evaluator for Haystack."""
        return default_to_dict(self, embedder=self.embedder)

    def warm_up(self) -> None:
        """Prepare the embedder."""
        if hasattr(self.embedder, "warm_up"):
            self.embedder.warm_up()

    def close(self) -> None:
        """Release the embedder."""
        if hasattr(self.embedder, "close"):
            self.embedder.close()

    @component.output_types(score=float, individual_scores=list[float])
    def run(self, predicted_answers: list[str], acceptable_answers: list[list[str]]) -> dict[str, Any]:
        """Return the mean `score` and the `individual_scores`.

        :param acceptable_answers: equally good wordings of each answer, at least one.
        :raises ValueError: an embedding has no direction.
        """
        pairs = zip(predicted_answers, acceptable_answers, strict=True)
        scores = [max(self._cosine(answer, wording) for wording in wordings) for answer, wordings in pairs]
        return {"score": sum(scores) / max(1, len(scores)), "individual_scores": scores}

    def _cosine(self, text: str, other: str) -> float:
        vectors = [np.asarray(self._embed(one)) for one in (text, other)]
        lengths = [float(np.linalg.norm(vector)) for vector in vectors]
        if not all(np.isfinite(length) and length > 0 for length in lengths):
            raise ValueError("an embedding without a direction")
        return float(np.clip(vectors[0] @ vectors[1] / (lengths[0] * lengths[1]), -1, 1))


def _embed_with(embedder: Any) -> Callable[[str], Sequence[float]]:  # noqa: ANN401 - as above
    embed: Callable[[str], Sequence[float]] | None = getattr(embedder, "question", None)
    if embed is not None:
        return embed
    return lambda text: embedder.run(text=text)["embedding"]
