"""Searching the tenant's passages."""

from collections.abc import Mapping
from dataclasses import replace

from haystack import component

from components.language.encoder import encode_query
from components.language.encoder_settings import VECTORS, settings_from
from components.retrieve.passages import from_payload, in_force
from components.turn import Evidence, Filters, Passage, Turn
from tenants import relations
from tenants.index import open_collection
from tenants.index.protocol import Collection, Conditions, Hit

_VARIANT_CREDIT = 0.5


@component
class TenantRetriever:
    """Finds passages of the tenant in context for every query of the turn and adds them to its evidence.

    Each vector's hits are scaled by that vector's best hit and added up with `weights`; a passage found by several
    queries keeps its best score. The parts of the score stay visible in `Passage.scores`. A passage of a document that
    another one supersedes says so in its status.

    :param weights: share of each sparse vector (`text-sparse`, `grams`, `headings`) in the fused score.
    :param candidates: hits taken from each vector and query.
    :param top_k: passages a pass adds at most.
    """

    def __init__(self, weights: dict[str, float] | None = None, candidates: int = 40, top_k: int = 20) -> None:
        self.weights = weights or {"text-sparse": 0.4, "grams": 0.2, "headings": 0.4}
        self.candidates = candidates
        self.top_k = top_k
        if unknown := set(self.weights) - set(VECTORS):
            raise ValueError(f"no such vectors: {sorted(unknown)}; there are {', '.join(VECTORS)}")

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its evidence grown."""
        conditions = to_conditions(turn.filters)
        collection = open_collection()
        found: dict[str, Passage] = {}
        searches = (turn.query.search, *turn.query.variants) if turn.passes <= 1 else turn.query.variants
        for text in searches:
            credit = 1.0 if text == turn.query.search else _VARIANT_CREDIT
            for passage in self._search(collection, turn, text, conditions, credit):
                known = found.get(passage.chunk_id)
                if known is None or passage.score > known.score:
                    found[passage.chunk_id] = passage
        ranked = sorted(found.values(), key=lambda passage: -passage.score)[: self.top_k]
        successors = relations.current().successors
        if successors:
            ranked = [in_force(passage, successors) for passage in ranked]
        return {"turn": replace(turn, evidence=grown(turn, ranked))}

    def _search(
        self, collection: Collection, turn: Turn, text: str, conditions: Conditions | None, credit: float
    ) -> list[Passage]:
        encoder = settings_from(collection.encoder)
        encoded = encode_query(text, encoder)
        queries = {name: weights for name, weights in encoded.items() if name in self.weights and weights}
        if not queries:
            return []
        hits = collection.search(queries, limit=self.candidates, conditions=conditions, payloads=False)
        parts, fused = self._fused(hits, credit)
        _add_lexical(parts, hits, turn.query.weights, encoder.k1)
        best = sorted(fused, key=lambda point: -fused[point])[: self.top_k]
        return [from_payload(hit.payload, fused[hit.id], parts[hit.id]) for hit in collection.fetch(best)]

    def _fused(
        self, hits: Mapping[str, list[Hit]], credit: float
    ) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """By point: the scores of each vector, its best hit being 1, and their weighted sum."""
        parts: dict[str, dict[str, float]] = {}
        fused: dict[str, float] = {}
        for name, found in hits.items():
            top = found[0].score if found else 0.0
            if top <= 0:
                continue
            share = credit * self.weights[name]
            for hit in found:
                scaled = hit.score / top
                parts.setdefault(hit.id, {})[name] = scaled
                fused[hit.id] = fused.get(hit.id, 0.0) + share * scaled
        return parts, fused


def _add_lexical(
    parts: dict[str, dict[str, float]], hits: Mapping[str, list[Hit]], weights: Mapping[str, float], k1: float
) -> None:
    """Adds `lexical`, the stem score as a share of the most that BM25 could give to the question's words.

    Unlike the scaled scores it does not depend on the other hits, so it can tell a good best hit from a poor one.
    """
    most = (k1 + 1) * sum(weights.values())
    for hit in hits.get("text-sparse", ()):
        parts.setdefault(hit.id, {})["lexical"] = min(1.0, hit.score / most) if most else 0.0


def grown(turn: Turn, found: list[Passage]) -> Evidence:
    """The turn's evidence with new passages behind the known ones, nothing lost, best score kept."""
    known = {passage.chunk_id: passage for passage in turn.evidence.passages}
    new = [passage for passage in found if passage.chunk_id not in known]
    better = {
        passage.chunk_id: passage
        for passage in found
        if passage.chunk_id in known and passage.score > _search_score(known[passage.chunk_id])
    }
    passages = [better.get(chunk_id, passage) for chunk_id, passage in known.items()] + new
    passages.sort(key=lambda passage: -_search_score(passage))
    return replace(turn.evidence, passages=tuple(passages), grew=bool(new))


def _search_score(passage: Passage) -> float:
    """What the search gave, before trust was added."""
    return passage.scores.get("search", passage.score)


def to_conditions(filters: Filters) -> Conditions | None:
    """The turn's filters as conditions on stored metadata; None when nothing is filtered."""
    fields = {
        "meta.project_key": filters.project_keys,
        "meta.tags": filters.tags,
        "meta.source_type": filters.source_types,
        "meta.evidence_tier": filters.evidence_tiers,
        "meta.status": filters.statuses,
        "meta.doc_id": filters.doc_ids,
    }
    any_of = {path: values for path, values in fields.items() if values is not None}
    dated = filters.date_from is not None or filters.date_to is not None
    between = {"meta.updated_at": (filters.date_from, filters.date_to)} if dated else {}
    return Conditions(any_of, between) if any_of or between else None
