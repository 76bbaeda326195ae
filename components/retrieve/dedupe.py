"""Near-duplicate removal, before anything is judged twice."""

from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from haystack import component

from components.language.identifiers import numbers
from components.language.normalise import fold
from components.turn import Passage, Turn


@component
class NearDuplicateFilter:
    """Drops passages that say what a better one says already, and the surplus of one document.

    Two passages are near duplicates when their fingerprints (SimHash over words, Charikar 2002, 64 bits) differ in at
    most `distance` bits. Between help articles, chunks with 90% of their words in common differ in 5 bits (median),
    those with all in 0, unrelated ones in 29 and never below 9 (n = 2,000 chunks). Passages with other numbers do not
    say the same, however alike they look, and a document in force is never dropped for one that is not. What an
    earlier pass kept stays, so that evidence never shrinks, and a pass whose every find is dropped here has found
    nothing.

    :param distance: bits up to which the lower-ranked passage is dropped.
    :param max_per_document: most passages kept of one document.
    """

    def __init__(self, distance: int = 4, max_per_document: int = 3) -> None:
        self.distance = distance
        self.max_per_document = max_per_document

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with distinct passages, best first."""
        settled = turn.evidence.earlier_ids
        distinct: list[tuple[Passage, int]] = []
        per_document: dict[str, int] = {}
        for passage in sorted(turn.evidence.passages, key=lambda passage: passage.status != "active"):
            mark = fingerprint(passage.text)
            if passage.chunk_id not in settled:
                if per_document.get(passage.doc_id, 0) >= self.max_per_document:
                    continue
                if any(
                    (mark ^ other).bit_count() <= self.distance and _is_duplicate(passage, earlier)
                    for earlier, other in distinct
                ):
                    continue
            distinct.append((passage, mark))
            per_document[passage.doc_id] = per_document.get(passage.doc_id, 0) + 1
        ids = frozenset(passage.chunk_id for passage, _ in distinct)
        passages = tuple(passage for passage in turn.evidence.passages if passage.chunk_id in ids)
        evidence = replace(turn.evidence, passages=passages, earlier_ids=ids, has_new=ids > settled)
        return {"turn": replace(turn, evidence=evidence)}


def _is_duplicate(passage: Passage, other: Passage) -> bool:
    return _numbers(passage.text) == _numbers(other.text)


@lru_cache(maxsize=8_192)
def _numbers(text: str) -> frozenset[str]:
    return frozenset(numbers(text))


@lru_cache(maxsize=8_192)
def fingerprint(text: str) -> int:
    """The 64-bit SimHash of a text's words. Kept by text, because a question looks at twenty."""
    words = [_hash(word) for word in fold(text).split()]
    if not words:
        return 0
    bits = np.unpackbits(np.array(words, dtype=np.uint64).view(np.uint8).reshape(len(words), 8), axis=1)
    majority = bits.sum(axis=0, dtype=np.int64) * 2 > len(words)
    return int.from_bytes(np.packbits(majority).tobytes(), "big")


@lru_cache(maxsize=100_000)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
