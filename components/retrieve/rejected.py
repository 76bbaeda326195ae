"""Rejected approaches that a question is close to, by its words or by its meaning.

An approach is close if it covers `min_coverage` of the question's words or if the cosine of both is at least
`min_cosine`. The cosine only chooses what the writer and the verifier read: it cannot tell a sentence that proposes an
approach from another one of the same topic (see `evaluation/datasets/approaches.yaml`).
"""

from collections.abc import Sequence

from components.embed.dense import EmbeddingFailed, cosine, embed_question
from components.faults import degraded
from components.judge.approaches import coverage
from components.language.encoder_settings import settings_from
from components.turn import Query, RejectedApproach
from tenants.index import open_collection
from tenants.knowledge.rejected import Rejected

MIN_COSINE = 0.82
"""Chosen on the even entries of `evaluation/datasets/approaches.yaml` with e5-small: with a limit of three, 9 of 14
questions bring their approach along, 13 of the odd ones; by their words 2 of all 28."""

_COMPARED = 200
"""Approaches compared by meaning, newest first: each one takes some 3 ms after a change."""


def close_to(
    query: Query, rejected: Sequence[Rejected], *, min_coverage: float, min_cosine: float, limit: int
) -> list[RejectedApproach]:
    """Return the approaches close to the question, at most `limit`: those that share its words come first."""
    shares = [coverage(query.weights, approach.text) for approach in rejected]
    cosines = _cosines(query.search, rejected[:_COMPARED]) if any(share < min_coverage for share in shares) else []
    cosines += [0.0] * (len(rejected) - len(cosines))
    ranked = sorted(
        (
            (share >= min_coverage, share if share >= min_coverage else cosine, place)
            for place, (share, cosine) in enumerate(zip(shares, cosines, strict=True))
            if share >= min_coverage or cosine >= min_cosine
        ),
        key=lambda entry: (not entry[0], -entry[1], entry[2]),
    )
    return [_approach(rejected[place], shares[place]) for _, _, place in ranked[:limit]]


def _cosines(question: str, rejected: Sequence[Rejected]) -> list[float]:
    """Return the cosine of the question and each approach; none for an index without vectors."""
    dense = settings_from(open_collection().encoder).dense
    if dense is None or not question:
        return []
    try:
        asked = embed_question(question, dense)
        return [cosine(asked, embed_question(approach.text, dense)) for approach in rejected]
    except EmbeddingFailed as error:
        degraded("related", error)
        return []


def _approach(entry: Rejected, share: float) -> RejectedApproach:
    return RejectedApproach(entry.rejected_id, entry.text, entry.reason, entry.day, entry.doc_id, share)
