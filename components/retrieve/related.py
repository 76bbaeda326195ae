"""What a tenant has related to the evidence: documents one edge away, and rejected approaches."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import get_args

from components.judge.approaches import coverage
from components.judge.coverage import prepare
from components.retrieve.passages import from_payload
from components.retrieve.retriever import TenantRetriever
from components.turn import EdgeKind, Evidence, Filters, Passage, RejectedApproach, Related, Turn
from tenants import documents
from tenants.edges import SUPERSEDES, Edge
from tenants.index import open_collection
from tenants.relations import Relations

_KINDS: Mapping[str, EdgeKind] = {kind: kind for kind in get_args(EdgeKind)}
_PASSAGES_EACH = 3


def related(turn: Turn, relations: Relations, max_edges: int) -> tuple[Related, ...]:
    """The best passage of each document one edge away from the accepted ones, in either direction, weightiest edge
    first.

    Best for the question, or the document's first where none shares a word with it. The turn's filters hold here too;
    an archived document is related to nothing. Costs one search, narrowed to these documents, and at most one query of
    the records.

    :param max_edges: edges followed, heaviest first.
    """
    ties = _strongest_edges(turn, relations, max_edges)
    passages = _best(turn, tuple(ties)) if ties else {}
    return tuple(
        Related(passages[doc_id], _KINDS[edge.kind], edge.weight, edge.from_doc, edge.to_doc)
        for doc_id, edge in ties.items()
        if doc_id in passages and passages[doc_id].status != "archived"
    )


def rejected(
    turn: Turn, relations: Relations, min_coverage: float, max_approaches: int
) -> tuple[RejectedApproach, ...]:
    """The rejected approaches that cover at least this share of the question, best first."""
    question = prepare(turn.query)
    approaches = [
        RejectedApproach(
            entry.rejected_id, entry.text, entry.reason, entry.day, entry.doc_id, coverage(question, entry.text)
        )
        for entry in relations.rejected
    ]
    relevant = [entry for entry in approaches if entry.coverage >= min_coverage]
    return tuple(sorted(relevant, key=lambda entry: -entry.coverage)[:max_approaches])


def _strongest_edges(turn: Turn, relations: Relations, max_edges: int) -> dict[str, Edge]:
    """The weightiest edge to each related document, weightiest first; the better passage's on a tie.

    A document that was kept itself needs no mention, but one that supersedes another kept one does.
    """
    doc_ids = dict.fromkeys(passage.doc_id for passage in turn.evidence.relevant_passages())
    allowed = turn.filters.doc_ids
    strongest: dict[str, Edge] = {}
    for doc_id in doc_ids:
        for edge in relations.edges.get(doc_id, ()):
            other = edge.to_doc if edge.from_doc == doc_id else edge.from_doc
            successor = edge.kind == SUPERSEDES and other == edge.from_doc
            if (other in doc_ids and not successor) or (allowed is not None and other not in allowed):
                continue
            if other not in strongest or edge.weight > strongest[other].weight:
                strongest[other] = edge
    weightiest = sorted(strongest, key=lambda other: -strongest[other].weight)[:max_edges]
    return {other: strongest[other] for other in weightiest}


def _best(turn: Turn, doc_ids: tuple[str, ...]) -> dict[str, Passage]:
    hits = len(doc_ids) * _PASSAGES_EACH
    narrowed = replace(
        turn,
        evidence=Evidence(),
        filters=replace(turn.filters, doc_ids=doc_ids),
        query=replace(turn.query, variants=()),
        passes=1,
    )
    best: dict[str, Passage] = {}
    for passage in TenantRetriever(candidates=hits, top_k=hits).run(narrowed)["turn"].evidence.passages:
        best.setdefault(passage.doc_id, passage)
    if turn.filters == Filters():
        best.update((passage.doc_id, passage) for passage in _first_passages(set(doc_ids) - best.keys()))
    return best


def _first_passages(doc_ids: Collection[str]) -> Iterator[Passage]:
    """The first passage of each document."""
    if doc_ids:
        records = documents.find(sorted(doc_ids)).values()
        for hit in open_collection().fetch([record.chunk_ids[0] for record in records if record.chunk_ids]):
            yield from_payload(hit.payload, 0.0, {})
