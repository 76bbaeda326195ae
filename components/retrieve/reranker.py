"""The final order of documents: how probably each answers, and the trust its source has earned."""

from collections.abc import Sequence

from haystack import Document, component

from components.judge.relevance import COSINE, SCORE, is_fitted, judge
from components.judge.terms import read_query
from components.language.encoder_settings import settings_from
from components.passages import SEARCH, to_passage, with_meta
from components.turn import Passage
from tenants.index import open_collection

_STATUS_PENALTY = {"active": 0.0, "superseded": 0.40, "deprecated": 0.40, "archived": 0.60}
_TRUST_BONUS = {"curated": 0.02, "accepted": 0.02, "auto": 0.0, "raw": -0.02}
_PRIORITY_STEP = 0.001


@component
class FeatureRanker:
    """Order documents by the probability that they answer the query, and by the trust in their source.

    The probability is that of `components.judge.relevance`, compared among all documents; it is stored in
    `meta["relevance"]` and its evidence in `meta["scores"]`. Trust: a superseded or deprecated document loses 0.40, an
    archived one 0.60; each of 100 priority points adds 0.001; curated and accepted documents gain and raw ones lose
    0.02. The sum is multiplied by `trust_weight`, so that trust decides near ties and never outweighs relevance.

    Cosines count if the index was encoded by the encoder that the judge was fitted for. With any other encoder, the
    documents that it finds are judged by their words.

    :param trust_weight: factor on the trust part; 0 ignores trust.
    :param with_search: order by the sum of three ranks: the one described above, the one in the search and the one by
        meaning alone, if the index has vectors. The judge alone is best for choosing what to quote; a model reads a
        dozen sections, and the orders together find more: of 107 questions about VK Cloud, 89 have the best passage in
        the prompt, 85 without the third.
    :param top_k: maximum number of documents returned; None: all.

    ```python
    FeatureRanker(top_k=5).run(query="warranty period", documents=documents)["documents"]
    ```
    """

    def __init__(self, trust_weight: float = 0.5, with_search: bool = False, top_k: int | None = None) -> None:
        self.trust_weight = trust_weight
        self.with_search = with_search
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents in final order, each with its `score`."""
        passages = [to_passage(document) for document in documents]
        by_meaning = any(COSINE in passage.scores for passage in passages) and _is_encoder_fitted()
        judged = judge(read_query(query), passages, by_meaning)
        scored = []
        for document, passage, judgement in zip(documents, passages, judged, strict=True):
            trust = self.trust_weight * trust_of(passage)
            scores = {**passage.scores, **judgement.evidence, SCORE: judgement.probability, "trust": trust}
            score = judgement.probability + trust
            scored.append(with_meta(document, score, relevance=judgement.probability, scores=scores))
        scored.sort(key=lambda document: -(document.score or 0.0))
        ranked = _by_all_ranks(scored) if self.with_search else scored
        return {"documents": ranked[: self.top_k]}


def _by_all_ranks(documents: Sequence[Document]) -> list[Document]:
    """Return the documents by their present rank plus those in the search and by meaning, trust included.

    Those without a code that the question names, whose probability is 0, come last.
    """
    names = [SEARCH, *([COSINE] if all(COSINE in one.meta["scores"] for one in documents) else [])]
    ranks = dict.fromkeys((document.id for document in documents), 0)
    for order in (documents, *(_by(name, documents) for name in names)):
        for rank, document in enumerate(order):
            ranks[document.id] += rank
    return sorted(documents, key=lambda one: (one.meta["relevance"] == 0, ranks[one.id]))


def _by(name: str, documents: Sequence[Document]) -> list[Document]:
    return sorted(documents, key=lambda one: -(one.meta["scores"].get(name, 0.0) + one.meta["scores"]["trust"]))


def _is_encoder_fitted() -> bool:
    dense = settings_from(open_collection().encoder).dense
    return dense is not None and is_fitted(dense.space)


def precedence(passage: Passage) -> tuple[float, str]:
    """Order passages that contradict each other: the trusted one is greater, then the newer."""
    return trust_of(passage), passage.updated_at


def trust_of(passage: Passage) -> float:
    """Return the score bonus for the status, trust and priority of a passage's source."""
    return (
        _TRUST_BONUS[passage.trust]
        - _STATUS_PENALTY[passage.status]
        + _PRIORITY_STEP * max(0, min(100, passage.priority))
    )
