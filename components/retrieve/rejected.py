"""Rejected approaches that a question or a draft is close to, by its words or by its meaning.

An approach is close to a question if it covers `min_coverage` of its words or if the cosine of both is at least
`min_cosine`. The cosine only chooses what the writer and the verifier read: it cannot tell a sentence that proposes an
approach from another one of the same topic (see `evaluation/datasets/approaches.yaml`).
"""

from collections.abc import Sequence

from components.embed.dense import EmbeddingFailed, cosine, embed_question
from components.faults import degraded
from components.judge.approaches import PROPOSED, coverage, proposed, shared
from components.language.encoder_settings import settings_from
from components.turn import Query, RejectedApproach
from tenants.index import open_collection
from tenants.knowledge.rejected import Rejected

MIN_COSINE = 0.82
"""Chosen on the even entries of `evaluation/datasets/approaches.yaml` with e5-small: with a limit of three, 9 of 14
questions bring their approach along, 13 of the odd ones; by their words 2 of all 28."""

MIN_SENTENCE_COSINE = 0.84
"""Chosen on the even entries of the same file: all 56 sentences that propose an approach bring it along among the three
nearest, and 53 of 56 of the odd entries; with 0.86, 48 and 49 do."""

_MIN_SHARED = 0.5
"""Share of an approach's words from which a sentence is near to it, where there are no vectors: that finds 21 of the
112 sentences of the same file."""

_READ = 1_000
"""Approaches compared with a draft by their words, newest first: some 12 ms, 3 ms when they are cached."""

_COMPARED = 200
"""Approaches compared by meaning, newest first: each one takes some 3 ms after a change."""


def close_to(
    query: Query, rejected: Sequence[Rejected], *, min_coverage: float, min_cosine: float, limit: int
) -> list[RejectedApproach]:
    """Return the approaches close to the question, at most `limit`: those that share its words come first."""
    shares = [coverage(query.weights, approach.text) for approach in rejected]
    cosines = _cosines([query.search], rejected[:_COMPARED]) if any(share < min_coverage for share in shares) else []
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


def proposed_by(sentences: Sequence[str], rejected: Sequence[Rejected]) -> list[RejectedApproach]:
    """Return the approaches that a sentence of a draft proposes in their own words."""
    draft = "\n".join(sentences)
    found = (_approach(one, 0.0) for one in rejected[:_READ] if shared(draft, one.text) >= PROPOSED)
    return [one for one in found if any(proposed(sentence, one) for sentence in sentences)]


def near_to(sentences: Sequence[str], rejected: Sequence[Rejected], *, limit: int) -> list[RejectedApproach]:
    """Return the approaches that a sentence of a draft may propose in other words, the nearest first.

    With e5-small, eight sentences take some 75 ms, 130 ms if there are 200 approaches.
    """
    compared, minimum = rejected[:_COMPARED], MIN_SENTENCE_COSINE
    nearness = _cosines(sentences, compared)
    if not nearness:
        minimum = _MIN_SHARED
        nearness = [max((shared(sentence, one.text) for sentence in sentences), default=0.0) for one in compared]
    ranked = sorted((-near, place) for place, near in enumerate(nearness) if near >= minimum)
    return [_approach(compared[place], 0.0) for _, place in ranked[:limit]]


def _cosines(texts: Sequence[str], rejected: Sequence[Rejected]) -> list[float]:
    """Return the cosine of each approach and the nearest text; none for an index without vectors."""
    given = list(filter(None, texts))
    if not given or not rejected:
        return []
    dense = settings_from(open_collection().encoder).dense
    if dense is None:
        return []
    try:
        vectors = [embed_question(text, dense) for text in given]
        approaches = [embed_question(approach.text, dense) for approach in rejected]
        return [max(cosine(vector, approach) for vector in vectors) for approach in approaches]
    except EmbeddingFailed as error:
        degraded("related", error)
        return []


def _approach(entry: Rejected, share: float) -> RejectedApproach:
    return RejectedApproach(entry.rejected_id, entry.text, entry.reason, entry.day, entry.doc_id, share)
