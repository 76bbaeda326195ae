"""What a tenant has tied to the evidence: documents one edge away, and approaches that it has rejected."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import get_args

from haystack import component

from components.judge.approaches import coverage
from components.judge.coverage import prepare
from components.retrieve.passages import from_payload
from components.retrieve.retriever import TenantRetriever
from components.turn import EdgeKind, Evidence, Filters, Passage, RejectedApproach, Related, Turn
from tenants import documents, relations
from tenants.edges import Edge
from tenants.index import open_collection
from tenants.relations import Relations

_KINDS: Mapping[str, EdgeKind] = {kind: kind for kind in get_args(EdgeKind)}
_PASSAGES_EACH = 3


@component
class RelatedKnowledge:
    """Puts related passages and rejected approaches beside the graded evidence.

    Related are the documents one edge away, in either direction, from the documents that the grader kept: of each one
    its best passage for the question, or its first where none shares a word with it. The turn's filters hold for them
    too; an archived document is related to nothing. Rejected approaches are those that cover enough of the question.

    A tenant without edges and rejected approaches costs a look-up in memory. With edges it costs one search, narrowed
    to the related documents, and at most one query of the records.

    :param most_edges: edges followed, weightiest first.
    :param least_coverage: share of the question that a rejected approach must cover.
    :param most_rejected: rejected approaches kept, best first.
    """

    def __init__(self, most_edges: int = 20, least_coverage: float = 0.4, most_rejected: int = 3) -> None:
        self.most_edges = most_edges
        self.least_coverage = least_coverage
        self.most_rejected = most_rejected
        hits = most_edges * _PASSAGES_EACH
        self._retriever = TenantRetriever(candidates=hits, top_k=hits)

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with `related` and `rejected` in its evidence; degraded when the search fails."""
        known = relations.current()
        if known is relations.NONE:
            return {"turn": turn}
        try:
            related = self._related(turn, known)
        except Exception:
            turn, related = turn.degraded_at("related"), ()
        rejected = self._rejected(turn, known)
        return {"turn": replace(turn, evidence=replace(turn.evidence, related=related, rejected=rejected))}

    def _related(self, turn: Turn, known: Relations) -> tuple[Related, ...]:
        ties = self._ties(turn, known)
        if not ties:
            return ()
        passages = self._best(turn, tuple(ties))
        return tuple(
            Related(passages[doc_id], _KINDS[edge.kind], edge.weight, edge.from_doc, edge.to_doc)
            for doc_id, edge in ties.items()
            if doc_id in passages and passages[doc_id].status != "archived"
        )

    def _ties(self, turn: Turn, known: Relations) -> dict[str, Edge]:
        """The weightiest edge to each related document, weightiest first; the better passage's on a tie."""
        kept = dict.fromkeys(passage.doc_id for passage in turn.evidence.usable())
        wanted = turn.filters.doc_ids
        found: dict[str, Edge] = {}
        for doc_id in kept:
            for edge in known.edges.get(doc_id, ()):
                other = edge.to_doc if edge.from_doc == doc_id else edge.from_doc
                if other in kept or (wanted is not None and other not in wanted):
                    continue
                if other not in found or edge.weight > found[other].weight:
                    found[other] = edge
        weightiest = sorted(found, key=lambda other: -found[other].weight)[: self.most_edges]
        return {other: found[other] for other in weightiest}

    def _best(self, turn: Turn, doc_ids: tuple[str, ...]) -> dict[str, Passage]:
        narrowed = replace(
            turn,
            evidence=Evidence(),
            filters=replace(turn.filters, doc_ids=doc_ids),
            query=replace(turn.query, variants=()),
            passes=1,
        )
        best: dict[str, Passage] = {}
        for passage in self._retriever.run(narrowed)["turn"].evidence.passages:
            best.setdefault(passage.doc_id, passage)
        if turn.filters == Filters():
            best.update((passage.doc_id, passage) for passage in _firsts(set(doc_ids) - best.keys()))
        return best

    def _rejected(self, turn: Turn, known: Relations) -> tuple[RejectedApproach, ...]:
        question = prepare(turn.query)
        found = [
            RejectedApproach(one.rejected_id, one.text, one.reason, one.day, one.doc_id, coverage(question, one.text))
            for one in known.rejected
        ]
        near = [one for one in found if one.coverage >= self.least_coverage]
        return tuple(sorted(near, key=lambda one: -one.coverage)[: self.most_rejected])


def _firsts(doc_ids: Collection[str]) -> Iterator[Passage]:
    """The first passage of each document."""
    if doc_ids:
        records = documents.find(sorted(doc_ids)).values()
        for hit in open_collection().fetch([record.chunk_ids[0] for record in records if record.chunk_ids]):
            yield from_payload(hit.payload, 0.0, {})
