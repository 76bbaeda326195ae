"""The context that an answer needs in addition to its evidence."""

from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.conflicts import conflicts, with_conflicts, with_successors
from components.retrieve.related import rejected, related
from components.turn import Turn
from tenants import relations
from tenants.relations import Relations


@component
class EvidenceContext:
    """Adds related passages, rejected approaches and contradictions to the graded evidence.

    When two accepted passages contradict each other, the trusted one takes the higher rank, so that the answer is
    quoted from it; so does one whose document supersedes that of another. For a tenant without edges and rejected
    approaches this is a look-up in memory without a query.

    :param max_edges: edges followed from the documents of the accepted passages, weightiest first.
    :param min_coverage: share of the question that a rejected approach must cover.
    :param max_rejected: rejected approaches added, best first.
    :param conflict_depth: accepted passages compared with one another, best first.
    :param conflict_relevance: least relevance of a passage to be compared.
    """

    def __init__(
        self,
        max_edges: int = 20,
        min_coverage: float = 0.4,
        max_rejected: int = 3,
        conflict_depth: int = 6,
        conflict_relevance: float = 0.5,
    ) -> None:
        self.max_edges = max_edges
        self.min_coverage = min_coverage
        self.max_rejected = max_rejected
        self.conflict_depth = conflict_depth
        self.conflict_relevance = conflict_relevance

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with the context of its evidence; without related passages and degraded if they fail."""
        tenant_relations = relations.current()
        if tenant_relations is not relations.NONE:
            turn = self._with_relations(turn, tenant_relations)
        turn_conflicts = tuple(
            conflict
            for conflict in conflicts(turn, self.conflict_depth, self.conflict_relevance)
            if frozenset((conflict.trusted.chunk_id, conflict.other.chunk_id)) not in tenant_relations.agreed
        )
        if turn_conflicts or turn.evidence.conflicts:
            turn = replace(turn, evidence=with_conflicts(turn.evidence, turn_conflicts))
        return {"turn": turn}

    def _with_relations(self, turn: Turn, tenant_relations: Relations) -> Turn:
        rejected_approaches = rejected(turn, tenant_relations, self.min_coverage, self.max_rejected)
        evidence = with_successors(turn.evidence, tenant_relations.successors)
        evidence = replace(evidence, rejected=rejected_approaches, related=())
        try:
            evidence = replace(evidence, related=related(turn, tenant_relations, self.max_edges))
        except Exception as error:
            turn = degraded(turn, "related", error)
        return replace(turn, evidence=evidence)
