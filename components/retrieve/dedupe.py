"""Near-duplicate removal, before anything is judged twice."""

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from haystack import Document, component

from components.language.identifiers import codes, numbers
from components.language.normalise import fold
from components.passages import SEARCH


@component
class NearDuplicateFilter:
    """Drop documents that repeat a better one, and the surplus of one source document.

    Two documents are near duplicates when their fingerprints (SimHash over words, Charikar 2002, 64 bits) differ in at
    most `distance` bits. Between help articles, chunks with 90% of their words in common differ in 5 bits (median),
    those with all in 0, unrelated ones in 29 and never below 9 (n = 2,000 chunks). Documents with different numbers are
    never duplicates, and an active document is never dropped for an outdated one. Documents of an earlier pass stay, so
    that evidence never shrinks.

    :param distance: maximum number of different bits for the lower-ranked document to be dropped.
    :param max_per_document: maximum number of chunks kept of one source document; those that name a code of the query
        are kept in addition.
    """

    def __init__(self, distance: int = 4, max_per_document: int = 3) -> None:
        self.distance = distance
        self.max_per_document = max_per_document

    @component.output_types(documents=list[Document], attempt=int)
    def run(
        self, documents: list[Document], seen: list[Document] | None = None, attempt: int = 1, query: str = ""
    ) -> dict[str, Any]:
        """Return distinct documents, best first.

        :param documents: what this pass found.
        :param seen: the documents of earlier passes.
        :param attempt: the number of this pass, from 1; passed on to the steps that count passes.
        :param query: the standalone question.
        """
        asked = frozenset(codes(query))
        settled = {document.id for document in seen or ()}
        merged = {document.id: document for document in (*(seen or ()), *documents)}
        ranked = sorted(merged.values(), key=lambda document: -_search_score(document))
        distinct: list[tuple[Document, int]] = []
        per_document: dict[object, int] = {}
        for document in sorted(ranked, key=lambda document: document.meta.get("status", "active") != "active"):
            text, source = document.content or "", document.meta.get("doc_id", document.id)
            mark = fingerprint(text)
            if document.id not in settled:
                if per_document.get(source, 0) >= self.max_per_document and not asked & set(codes(text)):
                    continue
                if any(
                    (mark ^ other).bit_count() <= self.distance and _numbers(text) == _numbers(earlier.content or "")
                    for earlier, other in distinct
                ):
                    continue
            distinct.append((document, mark))
            per_document[source] = per_document.get(source, 0) + 1
        kept = {document.id for document, _ in distinct}
        return {"documents": [document for document in ranked if document.id in kept], "attempt": attempt}


def _search_score(document: Document) -> float:
    scores: dict[str, float] = document.meta.get("scores") or {}
    return scores.get(SEARCH, document.score or 0.0)


@lru_cache(maxsize=8_192)
def _numbers(text: str) -> frozenset[str]:
    return frozenset(numbers(text))


@lru_cache(maxsize=8_192)
def fingerprint(text: str) -> int:
    """Return the 64-bit SimHash of a text's words. Kept by text, because a question looks at twenty."""
    words = [_hash(word) for word in fold(text).split()]
    if not words:
        return 0
    bits = np.unpackbits(np.array(words, dtype=np.uint64).view(np.uint8).reshape(len(words), 8), axis=1)
    majority = bits.sum(axis=0, dtype=np.int64) * 2 > len(words)
    return int.from_bytes(np.packbits(majority).tobytes(), "big")


@lru_cache(maxsize=100_000)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
