"""The final order of passages: how probably each answers, and the trust its document has earned."""

from dataclasses import replace

from haystack import component

from components.judge.ranked import SCORE as MODEL_SCORE
from components.judge.relevance import SCORE, RelevanceScore, relevance_model
from components.turn import Passage, Turn

_STATUS_PENALTY = {"active": 0.0, "superseded": 0.40, "deprecated": 0.40, "archived": 0.60}
_TRUST_BONUS = {"accepted": 0.02, "auto": 0.0, "raw": -0.02}
_PRIORITY_STEP = 0.001


@component
class FeatureReranker:
    """Orders the evidence by the probability that a passage answers and the trust its document has earned.

    The probability is that of `components.judge.relevance`, among all passages of the turn; the evidence for it stands
    in `Passage.scores`. Trust: a superseded or deprecated document loses 0.40, an archived one 0.60; each of 100
    priority points adds 0.001; accepted documents gain and raw ones lose 0.02. All of it times `trust_weight`, small
    beside the probability, so that trust settles near ties and never drowns relevance.

    :param trust_weight: factor on the trust part; 0 ignores trust.
    """

    def __init__(self, trust_weight: float = 0.5) -> None:
        self.trust_weight = trust_weight

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its passages in final order, `scores` naming each part of `score`."""
        searched = sorted(turn.evidence.passages, key=lambda passage: -_search_score(passage))
        judged = relevance_model().judge(turn.query, searched)
        passages = [self._scored(passage, judgement) for passage, judgement in zip(searched, judged, strict=True)]
        passages.sort(key=lambda passage: -passage.score)
        return {"turn": replace(turn, evidence=replace(turn.evidence, passages=tuple(passages)))}

    def _scored(self, passage: Passage, judged: RelevanceScore) -> Passage:
        trust = self.trust_weight * (
            _TRUST_BONUS[passage.trust] - _STATUS_PENALTY[passage.status] + _PRIORITY_STEP * passage.priority
        )
        parts = {SCORE: judged.probability, "search": _search_score(passage), "trust": trust}
        scores = {**passage.scores, **judged.evidence, **parts}
        # What a model has read in an earlier pass stands.
        return replace(passage, score=scores.get(MODEL_SCORE, judged.probability) + trust, scores=scores)


def _search_score(passage: Passage) -> float:
    return passage.scores.get("search", passage.score)
