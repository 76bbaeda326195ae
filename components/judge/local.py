"""The deterministic judge: visible evidence, numbers, codes, negation. No language model, no network, always the same.

It detects invented numbers, codes and names, and questions far from any passage. It does not detect a false paraphrase
made of the right words.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from components.judge.analysis import analyse
from components.judge.claims import check_cited
from components.judge.coverage import prepare
from components.judge.protocol import Cited, ClaimVerdict
from components.judge.relevance import SCORE, STRICT_CODES, relevance_model
from components.language.captions import is_resolution
from components.language.identifiers import codes
from components.language.relatives import relatives
from components.language.words import stems
from components.nested import Nested
from components.turn import Answerability, Draft, Passage, Query, SelfEvaluation, Turn


class LocalJudge(Nested):
    """Judges relevance by the fitted model of `components/judge/relevance.py`, and drafts by what they quote.

    :param fully: share of the question's weight that an answer's sentences must cover to answer it fully.
    :param partly: share below which an answer counts as no answer.
    """

    def __init__(self, fully: float = 0.5, partly: float = 0.15) -> None:
        self.fully = fully
        self.partly = partly

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The probability, by chunk id, that each passage answers the question; 0 where none of its codes occurs.

        Relevance computed by the reranker among all candidates is kept; other passages are compared with one another.
        """
        unscored = [passage for passage in passages if SCORE not in passage.scores]
        scored = {passage.chunk_id: passage.scores[SCORE] for passage in passages if SCORE in passage.scores}
        judged = zip(unscored, relevance_model().judge(query, unscored), strict=True)
        return scored | {passage.chunk_id: judgement.probability for passage, judgement in judged}

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        """Codes, then stems of the question that none of the passages holds, weightiest first.

        More than three codes are a pasted log, of which no document holds every one; they are left out.
        """
        analyses = [analyse(passage) for passage in passages]
        query_codes = query.codes if len(query.codes) <= STRICT_CODES else ()
        missing_codes = [code for code in query_codes if not any(code in analysis.codes for analysis in analyses)]
        absent = [
            stem
            for stem in query.weights
            if not any(stem in analysis.stems or relatives(stem, analysis.families) for analysis in analyses)
        ]
        return (*missing_codes, *sorted(absent, key=lambda stem: -query.weights[stem]))

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        """Each claim held against what it cites; see `components/judge/claims.py`."""
        return [check_cited(claim.text, claim.passages.values(), turn.query.search) for claim in claims]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        """Quality = 80% supported claims, 20% coverage of the question by what is quoted. Relevance is apart."""
        query = turn.query
        question = prepare(query)
        quoted = _quoted(draft)
        covered = sum(weight for stem, weight in question.weights.items() if stem in quoted)
        supported = draft.factuality / 100
        quality = round(100 * (0.8 * supported + 0.2 * min(1.0, covered / self.fully)))
        named = quoted | {code.lower() for said in _said(draft) for code in codes(said)}
        missing = tuple(code for code in query.codes[:STRICT_CODES] if code.lower() not in named)
        confidence = turn.evidence.adequacy * supported
        return SelfEvaluation(max(1, min(100, quality)), self._answerability(covered), confidence, missing)

    def _answerability(self, covered: float) -> Answerability:
        if covered >= self.fully:
            return "fully"
        return "partially" if covered >= self.partly else "cannot"


def _said(draft: Draft) -> Iterator[str]:
    """What a reader of the draft sees: its claims, and the titles and headings that they stand under."""
    yield from (claim.text for claim in draft.claims)
    yield from (f"{citation.passage.title}\n{citation.passage.heading}" for citation in draft.citations)


def _quoted(draft: Draft) -> frozenset[str]:
    """The stems a reader of the draft sees or stands under: its claims and the headings of what it cites.

    A solution need not repeat the problem that is stated above it in the same passage.
    """
    passages = [citation.passage for citation in draft.citations]
    heads = [analyse(passage).head for passage in passages]
    problems = [analyse(passage).stems for passage in passages if any(map(is_resolution, passage.text.split("\n")))]
    return frozenset().union(*heads, *problems, *(_stems(claim.text) for claim in draft.claims))


@lru_cache(maxsize=1_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(text))
