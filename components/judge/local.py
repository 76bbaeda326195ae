"""The deterministic judge: word coverage, names, numbers, codes, negation. No model, no network, always the same.

What it can see: invented numbers, codes and names, questions whose words the knowledge base lacks. What it cannot: a
false paraphrase made of the right words, or an answer given in entirely other words than the question.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from components.judge.analysis import analyse
from components.judge.calibration import calibrations, log_odds
from components.judge.claims import check_cited
from components.judge.coverage import Coverage, Question, cover, most, prepare
from components.judge.protocol import Cited, ClaimVerdict
from components.language.identifiers import codes
from components.language.relatives import relatives
from components.language.vocabulary import Vocabulary
from components.language.words import stems
from components.nested import Nested
from components.turn import Answerability, Draft, Passage, Query, SelfEvaluation, Turn

# Logistic regression (ridge, C = 5) on the features of `Coverage` and the search's lexical score, fitted on the Russian
# and English XQuAD development questions with the listed articles withheld (n = 1,038): is the answer there at all?
WEIGHTS = {
    "bias": -4.1,
    "sentence": 1.75,
    "sentence_soft": 2.95,
    "passage_soft": 2.28,
    "order": 4.42,
    "names_missing": -2.72,
    "lexical": 4.91,
}
_STRICT_CODES = 3
_ENGINE = "local"


class LocalJudge(Nested):
    """Judges by the features of `components/judge/coverage.py`.

    Relevance and confidence are probabilities, calibrated for the language of the passages with the weights that are
    the default: see `components/judge/calibration.py`.

    :param weights: coefficients by feature name and `bias`; those left out keep their fitted value.
    :param fully: share of the question's weight that an answer's sentences must cover to answer it fully.
    :param partly: share below which an answer counts as none.
    """

    def __init__(self, weights: dict[str, float] | None = None, fully: float = 0.5, partly: float = 0.15) -> None:
        if unknown := set(weights or {}) - set(WEIGHTS):
            raise ValueError(f"no such features: {sorted(unknown)}; there are {', '.join(WEIGHTS)}")
        self.weights = {**WEIGHTS, **(weights or {})}
        # `ceiling` rests on it: more of a feature is never less of a reason.
        if wrong := [name for name, weight in self.weights.items() if weight * WEIGHTS[name] < 0 and name != "bias"]:
            raise ValueError(f"weights of the wrong sign: {sorted(wrong)}")
        self.fully = fully
        self.partly = partly

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The probability, by chunk id, that each passage answers the question; 0 where none of its codes occurs."""
        question = prepare(query)
        return {passage.chunk_id: self._probability(question, passage) for passage in passages}

    def ceiling(self, query: Query, vocabulary: Vocabulary) -> float:
        """The relevance of a passage that holds all of the question's words that there are, side by side.

        No passage has more: words that the knowledge base lacks can be in none. Known only for a question searched as
        it stands; other readings of it have words of their own.
        """
        if query.variants:
            return 1.0
        known = sum(weight for stem, weight in query.weights.items() if stem in vocabulary.stems)
        total = sum(query.weights.values())
        highest = self._log_odds(most(prepare(query), vocabulary), known / total if total else 0.0)
        return calibrations(_ENGINE).highest(highest)

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        """Codes, then stems of the question that none of the passages holds, weightiest first.

        More than three codes are a pasted log, of which no document holds every one; they are left out.
        """
        analyses = [analyse(passage) for passage in passages]
        asked = query.codes if len(query.codes) <= _STRICT_CODES else ()
        lost = [code for code in asked if not any(code in analysis.codes for analysis in analyses)]
        absent = [
            stem
            for stem in query.weights
            if not any(stem in analysis.stems or relatives(stem, analysis.families) for analysis in analyses)
        ]
        return (*lost, *sorted(absent, key=lambda stem: -query.weights[stem]))

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:  # noqa: ARG002 - protocol
        """Each claim held against what it cites; see `components/judge/claims.py`."""
        return [check_cited(claim.text, claim.passages.values()) for claim in claims]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        """Quality = half adequacy, 30% supported claims, 20% coverage of the question by what is quoted."""
        query, relevance = turn.query, turn.evidence.adequacy
        question = prepare(query)
        quoted = _quoted(draft)
        covered = sum(weight for stem, weight in question.weights.items() if stem in quoted)
        supported = draft.factuality / 100
        quality = round(100 * (0.5 * relevance + 0.3 * supported + 0.2 * min(1.0, covered / self.fully)))
        named = quoted | {code.lower() for claim in draft.claims for code in codes(claim.text)}
        missing = tuple(code for code in query.codes[:_STRICT_CODES] if code.lower() not in named)
        language = draft.citations[0].passage.lang if draft.citations else ""
        sure = calibrations(_ENGINE).of(language).confidence.probability(log_odds(relevance))
        return SelfEvaluation(max(1, min(100, quality)), self._answerability(covered), sure * supported, missing)

    def _answerability(self, covered: float) -> Answerability:
        if covered >= self.fully:
            return "fully"
        return "partially" if covered >= self.partly else "cannot"

    def _probability(self, question: Question, passage: Passage) -> float:
        analysis = analyse(passage)
        if question.codes and not question.codes & analysis.codes:
            return 0.0
        found = self._log_odds(cover(question, analysis), passage.scores.get("lexical", 0.0))
        return calibrations(_ENGINE).of(passage.lang).relevance.probability(found)

    def _log_odds(self, features: Coverage, lexical: float) -> float:
        weights = self.weights
        return (
            weights["bias"]
            + weights["sentence"] * features.sentence
            + weights["sentence_soft"] * features.sentence_soft
            + weights["passage_soft"] * features.passage_soft
            + weights["order"] * features.order
            + weights["names_missing"] * features.names_missing
            + weights["lexical"] * lexical
        )


def _quoted(draft: Draft) -> frozenset[str]:
    """The stems a reader of the draft sees or stands under: its claims and the headings of what it cites."""
    heads = [analyse(citation.passage).head for citation in draft.citations]
    return frozenset().union(*heads, *(_stems(claim.text) for claim in draft.claims))


@lru_cache(maxsize=1_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(text))
