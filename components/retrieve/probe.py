"""A quick look at what the knowledge base would answer to a text."""

from typing import Any

from haystack import Document

from components.passages import relevance
from components.retrieve.reranker import FeatureRanker
from components.retrieve.retriever import DENSE_SHARE, TenantRetriever
from components.serialisation import Nested


class Probe(Nested):
    """Find the document most likely to answer a text, as the first pass of the pipeline would.

    :param by_words: search by words alone, which takes a millisecond.
    :param top_k: candidates compared.
    """

    def __init__(self, by_words: bool = False, top_k: int = 8) -> None:
        self.by_words = by_words
        self.top_k = top_k
        self._retriever = TenantRetriever(dense_share=0.0 if by_words else DENSE_SHARE, top_k=top_k)
        self._ranker = FeatureRanker()

    def ranked(self, text: str, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents with `meta["relevance"]`, best first.

        :param filters: a Haystack filter, as `haystack_filters` builds it.
        """
        found = self._retriever.run(query=text, filters=filters)["documents"]
        ranked: list[Document] = self._ranker.run(query=text, documents=found)["documents"]
        return ranked

    def best(self, text: str) -> Document | None:
        """Return the best document; None if nothing is found."""
        ranked = self.ranked(text)
        return ranked[0] if ranked else None

    def probability(self, text: str) -> float:
        """Return the probability (0..1) that the knowledge base answers the text."""
        best = self.best(text)
        return relevance(best) if best is not None else 0.0
