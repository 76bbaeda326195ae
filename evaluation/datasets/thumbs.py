"""Verdicts of a tenant's users and editors as graded answers."""

from collections import defaultdict
from collections.abc import Mapping

from components.turn import SHOWN
from evaluation.metrics.accuracy_coverage import GradedClaim
from tenants.audit import search
from tenants.core.errors import NotFound
from tenants.desk import feedback


def graded_thumbs() -> list[GradedClaim]:
    """Return the judged answers of the tenant in context: right if every thumb is up."""
    thumbs: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in feedback.latest():
        thumbs[verdict.turn_id].add(verdict.thumb)
    graded = []
    for turn_id, thumb in thumbs.items():
        confidence = _confidence(turn_id)
        if confidence is not None:
            graded.append(GradedClaim(confidence, thumb == {"up"}))
    return graded


def _confidence(turn_id: str) -> float | None:
    """Return the confidence of a turn that claimed an answer; None for other turns and for a pruned or erased one."""
    try:
        content = search.get(turn_id).content
    except NotFound:
        return None
    answer = content["answer"] if content is not None else None
    if not isinstance(answer, Mapping) or answer.get("outcome") not in SHOWN:
        return None
    scores = answer.get("scores")
    value = scores.get("confidence") if isinstance(scores, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
