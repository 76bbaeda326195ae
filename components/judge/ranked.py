"""Relevance by a reranking model, the rest by the local judge."""

from collections.abc import Mapping, Sequence

from components.judge.local import LocalJudge
from components.turn import Passage, Query

SCORE = "reranker"
"""The model's calibrated relevance among `Passage.scores`; `reranker-log-odds` is what the model itself said."""


class RankedJudge(LocalJudge):
    """Uses a model's relevance (`components.retrieve.model_reranker`) for the passages that it scored.

    Without it a passage that answers in other words than the question's, found by its vector, would be taken for
    irrelevant. Identifiers stay exact: a passage without the question's code is irrelevant whatever a model says. Where
    the model failed, the local judge decides alone.
    """

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The probability, by chunk id, that each passage answers the question; 0 where none of its codes occurs."""
        local = super().relevance(query, passages)
        return {
            passage.chunk_id: local[passage.chunk_id]
            if query.codes and not local[passage.chunk_id]
            else passage.scores.get(SCORE, local[passage.chunk_id])
            for passage in passages
        }
