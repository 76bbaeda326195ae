"""The final order of passages by one transparent formula."""

from dataclasses import replace

from haystack import component

from components.turn import Passage, Turn

_STATUS_PENALTY = {"active": 0.0, "superseded": 0.40, "deprecated": 0.40, "archived": 0.60}
_TRUST_BONUS = {"accepted": 0.02, "auto": 0.0, "raw": -0.02}
_PRIORITY_STEP = 0.001


@component
class FeatureReranker:
    """Orders the evidence by search score and the trust its documents have earned.

    Trust: a superseded or deprecated document loses 0.40, an archived one 0.60; each of 100 priority points adds
    0.001; accepted documents gain and raw ones lose 0.02. All of it times `trust_weight`, small beside the search score
    of 1 at best, so that trust settles near ties and never drowns relevance.

    :param trust_weight: factor on the trust part; 0 ignores trust.
    """

    def __init__(self, trust_weight: float = 0.5) -> None:
        self.trust_weight = trust_weight

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its passages in final order, `scores` naming each part of `score`."""
        passages = sorted(map(self._scored, turn.evidence.passages), key=lambda passage: -passage.score)
        return {"turn": replace(turn, evidence=replace(turn.evidence, passages=tuple(passages)))}

    def _scored(self, passage: Passage) -> Passage:
        if "search" in passage.scores:
            return passage
        trust = self.trust_weight * (
            _TRUST_BONUS[passage.trust] - _STATUS_PENALTY[passage.status] + _PRIORITY_STEP * passage.priority
        )
        scores = {**passage.scores, "search": passage.score, "trust": trust}
        return replace(passage, score=passage.score + trust, scores=scores)
