"""Searching the tenant's passages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from haystack import component

from components.embed.dense import EmbeddingFailed, embed_question
from components.language.encoder import encode_query
from components.language.encoder_settings import VECTORS, EncoderSettings, settings_from
from components.retrieve.passages import from_payload, in_force
from components.retrieve.searches import Found, Searches
from components.turn import Evidence, Filters, Passage, Turn
from tenants import relations
from tenants.index import DENSE, open_collection
from tenants.index.protocol import Collection, Conditions, Hit, Vector

KEYWORDS = MappingProxyType({"text-sparse": 0.4, "grams": 0.2, "headings": 0.4})
WITH_VECTORS = MappingProxyType({DENSE: 0.55, "text-sparse": 0.25, "headings": 0.05})

_VARIANT_CREDIT = 0.5


@component
class TenantRetriever:
    """Finds passages of the tenant in context for every query of the turn and adds them to its evidence.

    Each vector's hits are scaled and added up with the weights; a passage found by several queries keeps its best
    score. The parts of the score stay visible in `Passage.scores`. A passage of a document that another one supersedes
    says so in its status.

    An index that holds dense vectors is searched by them too: by the embedder that encoded it, so whoever switches
    models changes nothing here. When a question cannot be embedded, keyword search stands in and the turn is degraded.

    :param weights: share of each sparse vector (`text-sparse`, `grams`, `headings`) in the fused score.
    :param weights_with_vectors: the same, and that of `text-dense`, where there are dense vectors; an empty mapping
        leaves them alone.
    :param candidates: hits taken from each vector and query.
    :param top_k: passages a pass adds at most.
    :param kept: searches kept in memory, for questions that are asked again while nothing is written; 0: none.
    :param failures: failures of the embedder in a row, until it is left alone and keyword search stands in.
    :param pause: seconds that it is left alone for.
    """

    def __init__(
        self,
        weights: dict[str, float] | None = None,
        weights_with_vectors: dict[str, float] | None = None,
        candidates: int = 40,
        top_k: int = 20,
        kept: int = 500,
        failures: int = 3,
        pause: float = 30,
    ) -> None:
        self.weights = dict(KEYWORDS if weights is None else weights)
        self.weights_with_vectors = dict(WITH_VECTORS if weights_with_vectors is None else weights_with_vectors)
        self.candidates = candidates
        self.top_k = top_k
        self.kept = kept
        self.failures = failures
        self.pause = pause
        self._searches = Searches(kept)
        _check(self.weights, VECTORS)
        _check(self.weights_with_vectors, (*VECTORS, DENSE))

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its evidence grown."""
        conditions = to_conditions(turn.filters)
        collection = open_collection()
        found: dict[str, Passage] = {}
        cached = turn.passes <= 1 or turn.evidence.cached
        searches = (turn.query.search, *turn.query.variants) if turn.passes <= 1 else turn.query.variants
        for text in searches:
            credit = 1.0 if text == turn.query.search else _VARIANT_CREDIT
            asked = text, sorted(turn.query.weights.items()), turn.filters, credit
            search = self._searches.found(
                collection, asked, partial(self._search, collection, turn, text, conditions, credit)
            )
            cached &= search.known
            if not search.whole:
                turn = turn.degraded_at("embedder")
            for passage in search.passages:
                known = found.get(passage.chunk_id)
                if known is None or passage.score > known.score:
                    found[passage.chunk_id] = passage
        ranked = sorted(found.values(), key=lambda passage: -passage.score)[: self.top_k]
        successors = relations.current().successors
        if successors:
            ranked = [in_force(passage, successors) for passage in ranked]
        return {"turn": replace(turn, evidence=replace(grown(turn, ranked), cached=cached))}

    def _search(
        self, collection: Collection, turn: Turn, text: str, conditions: Conditions | None, credit: float
    ) -> Found:
        encoder = settings_from(collection.encoder)
        weights, queries, whole = self._queries(text, encoder)
        if not queries:
            return Found((), whole)
        hits = collection.search(queries, limit=self.candidates, conditions=conditions, payloads=False)
        parts, fused = _fused(hits, weights, credit)
        _add_lexical(parts, hits, turn.query.weights, encoder.k1)
        best = sorted(fused, key=lambda point: -fused[point])[: self.top_k]
        hits_in_full = collection.fetch(best)
        return Found(tuple(from_payload(hit.payload, fused[hit.id], parts[hit.id]) for hit in hits_in_full), whole)

    def _queries(self, text: str, encoder: EncoderSettings) -> tuple[dict[str, float], dict[str, Vector], bool]:
        """The weights in force, the vectors to ask by, and whether these are all that there are."""
        sparse = encode_query(text, encoder)
        if encoder.dense is None or not text or not self.weights_with_vectors.get(DENSE):
            return self.weights, _asked(sparse, self.weights), True
        try:
            dense = embed_question(text, encoder.dense, failures=self.failures, pause=self.pause)
        except EmbeddingFailed:
            return self.weights, _asked(sparse, self.weights), False
        queries = _asked({**sparse, DENSE: dense}, self.weights_with_vectors)
        return self.weights_with_vectors, queries, True


def _check(weights: Mapping[str, float], known: Sequence[str]) -> None:
    if unknown := set(weights) - set(known):
        raise ValueError(f"no such vectors: {sorted(unknown)}; there are {', '.join(known)}")


def _asked(encoded: Mapping[str, Vector], weights: Mapping[str, float]) -> dict[str, Vector]:
    return {name: vector for name, vector in encoded.items() if weights.get(name) and vector}


def _fused(
    hits: Mapping[str, list[Hit]], weights: Mapping[str, float], credit: float
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """By point: the scores of each vector, its best hit being 1, and their weighted sum.

    Cosines of a model crowd in a narrow band far above 0, so the worst hit of the dense vector is its 0.
    """
    parts: dict[str, dict[str, float]] = {}
    fused: dict[str, float] = {}
    for name, found in hits.items():
        top = found[0].score if found else 0.0
        floor = found[-1].score if name == DENSE and len(found) > 1 else 0.0
        if top <= 0:
            continue
        share = credit * weights[name]
        for hit in found:
            scaled = (hit.score - floor) / (top - floor) if top > floor else 1.0
            parts.setdefault(hit.id, {})[name] = scaled
            fused[hit.id] = fused.get(hit.id, 0.0) + share * scaled
            if name == DENSE:
                parts[hit.id]["cosine"] = max(0.0, hit.score)
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
