"""Grading of documents as evidence for a question."""

from collections.abc import Sequence
from typing import Any

from haystack import Document, component

from components.faults import degraded
from components.judge.llm import LlmJudge
from components.judge.relevance import STRICT_CODES
from components.judge.terms import analyse, read_query
from components.language.words import words
from components.models.calls import tier_of
from components.passages import relevance, to_passage, with_meta
from components.turn import Complexity, Passage, Quality, Query

GRADER = "grader"


@component
class DocGrader:
    """Grade every document YES or NO, and estimate how well the accepted ones answer together.

    The local judge says YES if the probability that the ranker stored in `meta["relevance"]` is at least `threshold`;
    adequacy is the highest of these. A document about a code that the query names is also accepted. If any document is
    accepted, so is the best one. For the qualities in `model_for`, a model grades what the local judge accepted, all in
    one call; documents that it has graded in an earlier pass keep their grade. If the model fails, the local grades
    apply and the turn is degraded (`grader`).

    Identifiers are exact: if the query names codes and no accepted document holds any of them, adequacy is 0.

    :param threshold: minimum probability for YES.
    :param depth: maximum number of accepted documents.
    :param judge: the model that grades; None for the local judge alone.
    :param model_for: qualities for which the model grades.

    ```python
    DocGrader(threshold=0.2).run(query="warranty period", documents=documents)["adequacy"]
    ```
    """

    def __init__(
        self,
        threshold: float = 0.2,
        depth: int = 12,
        judge: LlmJudge | None = None,
        model_for: list[Quality] | None = None,
    ) -> None:
        self.threshold = threshold
        self.depth = depth
        self.judge = judge
        self.model_for = ["thorough"] if model_for is None else model_for

    @component.output_types(
        documents=list[Document], adequacy=float, missing=list[str], grew=bool, graded=list[Document]
    )
    def run(
        self,
        query: str,
        documents: list[Document],
        seen: list[Document] | None = None,
        locale: str = "ru",
        quality: Quality = "balanced",
        complexity: Complexity = "unknown",
    ) -> dict[str, Any]:
        """Grade the documents.

        :param documents: ranked, best first.
        :param seen: the documents of earlier passes.
        :returns: `documents`: the accepted ones; `adequacy` (0..1); `missing`: codes and words of the query that no
            accepted document holds, or topics that the model misses; `grew`: whether an accepted document is new in
            this pass; `graded`: all documents with `meta["graded"]`.
        """
        read = read_query(query)
        accepted = [one for one in documents if relevance(one) >= self.threshold or holds_code(read, to_passage(one))]
        if accepted and documents[0] not in accepted:
            accepted.append(documents[0])
        accepted = accepted[: self.depth]
        adequacy = max(map(relevance, accepted), default=0.0)
        missing = open_words(read, [to_passage(document) for document in accepted])
        if accepted and self.judge is not None and quality in self.model_for:
            try:
                passages = [to_passage(document) for document in accepted]
                grades = self.judge.grade(query, passages, locale=locale, tier=tier_of(quality, complexity))
                best = accepted[0]
                answering = [one for one in accepted if to_passage(one).chunk_id in grades.answering]
                judged = [with_meta(one, relevance=max(relevance(one), grades.adequacy)) for one in answering]
                accepted = [*judged, best] if answering and best not in answering else judged
                adequacy, missing = grades.adequacy, list(grades.missing)
            except Exception as error:
                degraded(GRADER, error)
        if lacks_codes(read, [to_passage(document) for document in accepted]):
            adequacy = 0.0
        ids = {document.id for document in accepted}
        graded = [with_meta(document, graded=document.id in ids) for document in documents]
        known = {document.id for document in seen or ()}
        grew = any(known.isdisjoint(one.meta.get("chunk_ids") or (one.id,)) for one in accepted)
        return {"documents": accepted, "adequacy": adequacy, "missing": missing, "grew": grew, "graded": graded}


def holds_code(query: Query, passage: Passage) -> bool:
    """Return whether a passage is about one of the few codes that the query names."""
    return 0 < len(query.codes) <= STRICT_CODES and not analyse(passage).codes.isdisjoint(query.codes)


def lacks_codes(query: Query, passages: Sequence[Passage]) -> bool:
    """Return whether the query names codes, and the passages hold none of them."""
    return 0 < len(query.codes) <= STRICT_CODES and not any(holds_code(query, passage) for passage in passages)


def open_words(query: Query, passages: Sequence[Passage]) -> list[str]:
    """Return the codes, then the content words of the query that none of the passages holds."""
    analyses = [analyse(passage) for passage in passages]
    strict = query.codes if len(query.codes) <= STRICT_CODES else ()
    absent_codes = [code for code in strict if not any(code in analysis.codes for analysis in analyses)]
    absent = [
        word.text
        for word in words(query.search)
        if not word.stop
        and word.stem in query.weights
        and not any(word.stem in analysis.stems for analysis in analyses)
    ]
    return list(dict.fromkeys((*absent_codes, *absent)))
