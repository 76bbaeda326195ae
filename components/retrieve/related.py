"""What a tenant has related to the evidence: documents one edge away, and rejected approaches."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from haystack import Document, component

from components.faults import degraded
from components.judge.approaches import coverage
from components.judge.terms import read_query
from components.passages import from_payload, to_passage
from components.retrieve.retriever import TenantRetriever
from components.turn import EdgeKind, Passage, Query, RejectedApproach, Related
from tenants import documents as records
from tenants import relations
from tenants.edges import SUPERSEDES, Edge
from tenants.index import open_collection
from tenants.relations import Relations

_KINDS: Mapping[str, EdgeKind] = {kind: kind for kind in get_args(EdgeKind)}


@component
class EvidenceContext:
    """Find what an answer should know of beside its evidence: related documents and rejected approaches.

    A tenant without edges and rejected approaches costs a look-up in memory and no query. If related documents cannot
    be read, the turn goes on without them and is degraded (`related`).

    :param max_edges: edges followed from the documents of the evidence, heaviest first.
    :param min_coverage: share of the question that a rejected approach must cover.
    :param max_rejected: rejected approaches, best first.
    :param retriever: finds the best passage of a related document; its weights should be those of the pipeline.
    """

    def __init__(
        self,
        max_edges: int = 20,
        min_coverage: float = 0.4,
        max_rejected: int = 3,
        retriever: TenantRetriever | None = None,
    ) -> None:
        self.max_edges = max_edges
        self.min_coverage = min_coverage
        self.max_rejected = max_rejected
        self.retriever = retriever or TenantRetriever()

    @component.output_types(related=list[Related], rejected=list[RejectedApproach])
    def run(self, query: str, documents: list[Document], filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the `related` documents of the evidence and the `rejected` approaches close to the query.

        :param documents: the accepted evidence, best first.
        """
        known = relations.current()
        if known is relations.NONE:
            return {"related": [], "rejected": []}
        read = read_query(query)
        try:
            found = self._related(query, [to_passage(document) for document in documents], known, filters)
        except Exception as error:
            degraded("related", error)
            found = []
        return {"related": found, "rejected": self._rejected(read, known)}

    def _rejected(self, query: Query, known: Relations) -> list[RejectedApproach]:
        """The rejected approaches that cover enough of the question, best first."""
        approaches = [
            RejectedApproach(
                entry.rejected_id,
                entry.text,
                entry.reason,
                entry.day,
                entry.doc_id,
                coverage(query.weights, entry.text),
            )
            for entry in known.rejected
        ]
        relevant = [entry for entry in approaches if entry.coverage >= self.min_coverage]
        return sorted(relevant, key=lambda entry: -entry.coverage)[: self.max_rejected]

    def _related(
        self, query: str, evidence: Sequence[Passage], known: Relations, filters: dict[str, Any] | None
    ) -> list[Related]:
        """The best passage of each document one edge away, heaviest edge first; none of an archived document.

        Costs one search, narrowed to these documents, and at most one query of the records.
        """
        edges = self._strongest_edges(evidence, known)
        passages = self._best(query, tuple(edges), filters) if edges else {}
        return [
            Related(passages[doc_id], _KINDS[edge.kind], edge.weight, edge.from_doc, edge.to_doc)
            for doc_id, edge in edges.items()
            if doc_id in passages and passages[doc_id].status != "archived"
        ]

    def _strongest_edges(self, evidence: Sequence[Passage], known: Relations) -> dict[str, Edge]:
        """The heaviest edge to each related document; that of the better passage on a tie.

        A document of the evidence itself needs no mention, but one that supersedes another does.
        """
        doc_ids = dict.fromkeys(passage.doc_id for passage in evidence)
        strongest: dict[str, Edge] = {}
        for doc_id in doc_ids:
            for edge in known.edges.get(doc_id, ()):
                other = edge.to_doc if edge.from_doc == doc_id else edge.from_doc
                successor = edge.kind == SUPERSEDES and other == edge.from_doc
                if other in doc_ids and not successor:
                    continue
                if other not in strongest or edge.weight > strongest[other].weight:
                    strongest[other] = edge
        heaviest = sorted(strongest, key=lambda other: -strongest[other].weight)[: self.max_edges]
        return {other: strongest[other] for other in heaviest}

    def _best(self, query: str, doc_ids: tuple[str, ...], filters: dict[str, Any] | None) -> dict[str, Passage]:
        """The best passage of each document for the query; the first one where nothing filters and none matches."""
        within = {"field": "meta.doc_id", "operator": "in", "value": list(doc_ids)}
        conditions = [*(filters or {}).get("conditions", ()), within]
        allowed = [set(one["value"]) for one in conditions if one["field"] == "meta.doc_id"]
        narrowed = [one for one in conditions if one["field"] != "meta.doc_id"]
        both = sorted(set.intersection(*allowed))
        narrowed.append({**within, "value": both})
        found = self.retriever.run(query=query, filters={"operator": "AND", "conditions": narrowed})["documents"]
        best: dict[str, Passage] = {}
        for document in found:
            best.setdefault(document.meta["doc_id"], to_passage(document))
        if not filters:
            best.update((passage.doc_id, passage) for passage in _first_passages(set(both) - best.keys()))
        return best


def _first_passages(doc_ids: Collection[str]) -> Iterator[Passage]:
    """The first passage of each document."""
    if doc_ids:
        stored = records.find(sorted(doc_ids)).values()
        for hit in open_collection().fetch([record.chunk_ids[0] for record in stored if record.chunk_ids]):
            yield to_passage(from_payload(hit.payload, 0.0, {}))
