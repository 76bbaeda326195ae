"""Near-duplicate removal, before anything is judged twice."""

from dataclasses import replace
from functools import lru_cache

from haystack import component

from components.language.normalise import fold
from components.turn import Passage, Turn


@component
class NearDuplicateFilter:
    """Drops passages that say what a better one says already, and the surplus of one document.

    Two passages are near duplicates when the Jaccard similarity of their word sets reaches `threshold` (Broder 1997,
    without shingles: chunks are short). What an earlier pass kept stays, so that evidence never shrinks, and a pass
    whose every find is dropped here has found nothing.

    :param threshold: similarity in 0..1 from which the lower-ranked passage is dropped.
    :param max_per_document: most passages kept of one document.
    """

    def __init__(self, threshold: float = 0.9, max_per_document: int = 3) -> None:
        self.threshold = threshold
        self.max_per_document = max_per_document

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with distinct passages, best first."""
        settled = turn.evidence.settled
        kept: list[tuple[Passage, frozenset[str]]] = []
        per_document: dict[str, int] = {}
        for passage in turn.evidence.passages:
            words = _words(passage.text)
            if passage.chunk_id not in settled:
                if per_document.get(passage.doc_id, 0) >= self.max_per_document:
                    continue
                if any(_similarity(words, other) >= self.threshold for _, other in kept):
                    continue
            kept.append((passage, words))
            per_document[passage.doc_id] = per_document.get(passage.doc_id, 0) + 1
        passages = tuple(passage for passage, _ in kept)
        ids = frozenset(passage.chunk_id for passage in passages)
        evidence = replace(turn.evidence, passages=passages, settled=ids, grew=ids > settled)
        return {"turn": replace(turn, evidence=evidence)}


@lru_cache(maxsize=1_000)
def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


def _similarity(one: frozenset[str], two: frozenset[str]) -> float:
    smaller, larger = sorted((len(one), len(two)))
    if not larger or smaller < larger / 2:
        return 0.0
    common = len(one & two)
    return common / (smaller + larger - common)
