"""What an answer must know beside its evidence."""

from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.conflicts import conflicts, heeding
from components.retrieve.related import rejected, related
from components.turn import Turn
from tenants import relations
from tenants.relations import Relations


@component
class EvidenceContext:
    """Puts related passages, rejected approaches and contradictions beside the graded evidence.

    Where two kept passages contradict each other, the trusted one takes the better place, so that the answer is quoted
    from it. A tenant without edges and rejected approaches costs a look-up in memory and no query.

    :param most_edges: edges followed from the documents of the kept passages, weightiest first.
    :param least_coverage: share of the question that a rejected approach must cover.
    :param most_rejected: rejected approaches kept, best first.
    :param conflict_depth: kept passages compared with one another, best first.
    :param conflict_relevance: least relevance of a passage, so that it is compared.
    """

    def __init__(
        self,
        most_edges: int = 20,
        least_coverage: float = 0.4,
        most_rejected: int = 3,
        conflict_depth: int = 6,
        conflict_relevance: float = 0.5,
    ) -> None:
        self.most_edges = most_edges
        self.least_coverage = least_coverage
        self.most_rejected = most_rejected
        self.conflict_depth = conflict_depth
        self.conflict_relevance = conflict_relevance

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with the context of its evidence; without related passages and degraded if they fail."""
        known = relations.current()
        if known is not relations.NONE:
            turn = self._with_relations(turn, known)
        found = tuple(conflicts(turn, self.conflict_depth, self.conflict_relevance))
        if found or turn.evidence.conflicts:
            turn = replace(turn, evidence=heeding(turn.evidence, found))
        return {"turn": turn}

    def _with_relations(self, turn: Turn, known: Relations) -> Turn:
        near = rejected(turn, known, self.least_coverage, self.most_rejected)
        evidence = replace(turn.evidence, rejected=near, related=())
        try:
            evidence = replace(evidence, related=related(turn, known, self.most_edges))
        except Exception as error:
            turn = degraded(turn, "related", error)
        return replace(turn, evidence=evidence)
