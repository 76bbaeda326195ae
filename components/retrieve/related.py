"""Context related to the evidence: documents one edge away, rejected approaches, contradictions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from haystack import Document, component

from components.faults import degraded
from components.judge.terms import read_query
from components.passages import from_payload, in_force, relevance, to_passage, with_meta
from components.retrieve.rejected import MIN_COSINE, close_to
from components.retrieve.reranker import precedence
from components.retrieve.retriever import TenantRetriever
from components.turn import Conflict, ConflictKind, EdgeKind, Passage, RejectedApproach, Related, Statement
from tenants.index import open_collection
from tenants.knowledge import documents as records
from tenants.knowledge import relations
from tenants.knowledge.contradictions import Side
from tenants.knowledge.document_edges import SUPERSEDES, Edge
from tenants.knowledge.relations import Relations

_KINDS: Mapping[str, EdgeKind] = {kind: kind for kind in get_args(EdgeKind)}
_CONFLICTS: Mapping[str, ConflictKind] = {kind: kind for kind in get_args(ConflictKind)}


@component
class EvidenceContext:
    """Find what an answer needs besides its evidence: related documents, rejected approaches, contradictions.

    Contradictions are those that were found when documents changed. If two documents of the evidence contradict each
    other, the more trusted one goes first, or the newer one if both are trusted equally. For a tenant that has none of
    these, this costs a look-up in memory and no query. If the other documents cannot be read, the turn goes on without
    them and is degraded (`related`).

    :param max_edges: edges followed from the documents of the evidence, heaviest first.
    :param min_coverage: share of the question's words that a rejected approach must cover, unless its cosine is high
        enough.
    :param min_cosine: minimum cosine of the question and a rejected approach, if the index has vectors.
    :param max_rejected: rejected approaches, best first.
    :param max_conflicts: contradictions of the evidence, those of the best document first.
    :param retriever: finds the best passage of a related document; its weights should be those of the pipeline.
    """

    def __init__(
        self,
        max_edges: int = 20,
        min_coverage: float = 0.4,
        min_cosine: float = MIN_COSINE,
        max_rejected: int = 3,
        max_conflicts: int = 3,
        retriever: TenantRetriever | None = None,
    ) -> None:
        self.max_edges = max_edges
        self.min_coverage = min_coverage
        self.min_cosine = min_cosine
        self.max_rejected = max_rejected
        self.max_conflicts = max_conflicts
        self.retriever = retriever or TenantRetriever()

    @component.output_types(
        documents=list[Document], related=list[Related], rejected=list[RejectedApproach], conflicts=list[Conflict]
    )
    def run(self, query: str, documents: list[Document], filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the `documents`, what is `related` to them, the `rejected` approaches close to the query, `conflicts`.

        :param documents: the accepted evidence, best first.
        """
        known = relations.current()
        if known is relations.NONE:
            return {"documents": documents, "related": [], "rejected": [], "conflicts": []}
        try:
            found = self._related(query, [to_passage(document) for document in documents], known, filters)
        except Exception as error:
            degraded("related", error)
            found = []
        try:
            conflicts = self._conflicts(documents, known, anywhere=not filters)
        except Exception as error:
            degraded("related", error)
            conflicts = []
        return {
            "documents": _trusted_first(documents, conflicts, known.successors),
            "related": found,
            "rejected": close_to(
                read_query(query),
                known.rejected,
                min_coverage=self.min_coverage,
                min_cosine=self.min_cosine,
                limit=self.max_rejected,
            ),
            "conflicts": conflicts,
        }

    def _conflicts(self, documents: Sequence[Document], known: Relations, *, anywhere: bool) -> list[Conflict]:
        """Return the contradictions of the evidence, each with the sentences of both sides.

        Costs one look-up of their chunks if there are any.

        :param anywhere: whether the other side may be a document outside the evidence.
        """
        owners = {chunk_id: document for document in documents for chunk_id in _chunk_ids(document)}
        pairs = dict.fromkeys(
            pair
            for document in documents
            for pair in known.contradictions.get(str(document.meta.get("doc_id")), ())
            if (pair.one.chunk_id in owners) + (pair.other.chunk_id in owners) >= (1 if anywhere else 2)
        )
        chosen = list(pairs)[: self.max_conflicts]
        wanted = [side.chunk_id for pair in chosen for side in (pair.one, pair.other)]
        hits = open_collection().fetch(wanted) if wanted else ()
        chunks = {hit.id: in_force(to_passage(from_payload(hit.payload, 0.0, {})), known.successors) for hit in hits}
        conflicts = []
        for pair in chosen:
            if pair.one.chunk_id in chunks and pair.other.chunk_id in chunks:
                sides = [_statement(side, chunks[side.chunk_id], owners) for side in (pair.one, pair.other)]
                other, trusted = sorted(sides, key=lambda side: precedence(side.passage))
                conflicts.append(Conflict(_CONFLICTS[pair.kind], trusted, other))
        return conflicts

    def _related(
        self, query: str, evidence: Sequence[Passage], known: Relations, filters: dict[str, Any] | None
    ) -> list[Related]:
        """Return the best passage of each document one edge away, heaviest edge first; none of an archived document.

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
        """Return the heaviest edge to each related document; on a tie, the edge of the better passage.

        Documents of the evidence are omitted unless they supersede another one.
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
        """Return each document's best passage for the query; its first one if nothing filters and none matches."""
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


def _chunk_ids(document: Document) -> Sequence[str]:
    """Return the chunks that a document holds: those of its section, or its own alone."""
    return document.meta.get("chunk_ids") or (document.id,)


def _statement(side: Side, chunk: Passage, owners: Mapping[str, Document]) -> Statement:
    """Return the sentence in the document of the evidence that holds it, else in its chunk."""
    stated = chunk.text[side.start : side.end]
    if side.chunk_id in owners:
        passage = to_passage(owners[side.chunk_id])
        at = passage.text.find(stated)
        if at >= 0:
            return Statement(passage, (at, at + len(stated)))
    return Statement(chunk, (side.start, side.end))


def _trusted_first(
    documents: list[Document], conflicts: Sequence[Conflict], successors: Mapping[str, str]
) -> list[Document]:
    """Move each document before those that it supersedes or, being more trusted, contradicts.

    Both are about the same thing, so the document that goes first is as relevant as the other one.
    """
    ordered = list(documents)
    for conflict in conflicts:
        _put_first(ordered, _of_chunk(ordered, conflict.trusted.passage), _of_chunk(ordered, conflict.other.passage))
    for older, newer in successors.items():
        _put_first(ordered, _of_document(ordered, newer), _of_document(ordered, older))
    return ordered


def _put_first(documents: list[Document], first: int | None, second: int | None) -> None:
    """Move one document before another, and give it the relevance of both."""
    if first is None or second is None:
        return
    shared = max(relevance(documents[first]), relevance(documents[second]))
    documents.insert(min(first, second), with_meta(documents.pop(first), relevance=shared))


def _of_chunk(documents: Sequence[Document], passage: Passage) -> int | None:
    return next((place for place, one in enumerate(documents) if passage.chunk_id in _chunk_ids(one)), None)


def _of_document(documents: Sequence[Document], doc_id: str) -> int | None:
    return next((place for place, one in enumerate(documents) if to_passage(one).doc_id == doc_id), None)


def _first_passages(doc_ids: Collection[str]) -> Iterator[Passage]:
    """Yield the first passage of each document."""
    if doc_ids:
        stored = records.find(sorted(doc_ids)).values()
        for hit in open_collection().fetch([record.chunk_ids[0] for record in stored if record.chunk_ids]):
            yield to_passage(from_payload(hit.payload, 0.0, {}))
