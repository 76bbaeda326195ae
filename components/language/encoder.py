"""Sparse vectors of texts: BM25 (Robertson & Zaragoza 2009) over stems, character n-grams and headings.

Only the passage's half of BM25 is computed here, with a fixed average length, so that a vector never depends on its
neighbours; the index multiplies by its own inverse document frequency.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from zlib import crc32

from components.language.normalise import fold
from components.language.words import content_words, one_script, stems

VECTORS = ("text-sparse", "grams", "headings")
"""Names of the vectors: content stems, character 3- and 4-grams of words, stems of title and heading path."""

VERSION = "2"
"""Raised whenever the same text encodes differently, so that stored passages are encoded anew."""

K1 = 1.2
B = 0.75
_AVERAGE_LENGTH = {"text-sparse": 140, "grams": 1500, "headings": 8}


def encode_passage(title: str, heading: str, text: str) -> dict[str, dict[int, float]]:
    """The three vectors of a passage. `heading` is the path below the title."""
    head = f"{title}\n{heading}"
    whole = f"{head}\n{text}"
    return {
        "text-sparse": _saturated(Counter(_stem_dimensions(stems(whole))), "text-sparse"),
        "grams": _saturated(_gram_counts(whole), "grams"),
        "headings": _saturated(Counter(_stem_dimensions(stems(head))), "headings"),
    }


def encode_query(text: str) -> dict[str, dict[int, float]]:
    """The three vectors of a question: each distinct stem or gram once. All empty when it has no content word."""
    stem_weights = dict.fromkeys(_stem_dimensions(stems(text)), 1.0)
    return {
        "text-sparse": stem_weights,
        "grams": dict.fromkeys(_gram_counts(text), 1.0),
        "headings": stem_weights,
    }


def _saturated(counts: Mapping[int, int], vector: str) -> dict[int, float]:
    length_norm = K1 * (1 - B + B * sum(counts.values()) / _AVERAGE_LENGTH[vector])
    # Hundreds of dimensions share a handful of counts, and rounding each one takes longer than finding them.
    weights = {n: round(n * (K1 + 1) / (n + length_norm), 5) for n in set(counts.values())}
    return {dimension: weights[n] for dimension, n in counts.items()}


def _stem_dimensions(found: Iterable[str]) -> list[int]:
    return [dimension(stem) for stem in found]


@lru_cache(maxsize=200_000)
def dimension(term: str) -> int:
    """The vector dimension of a stem or gram: its CRC-32; 100,000 terms meet about once in 2^32 places."""
    return crc32(term.encode())


def _gram_counts(text: str) -> Counter[int]:
    return Counter(chain.from_iterable(map(_grams, content_words(text))))


@lru_cache(maxsize=100_000)
def _grams(word: str) -> tuple[int, ...]:
    padded = f" {fold(one_script(word))} "
    return tuple(crc32(padded[i : i + n].encode()) for n in (3, 4) for i in range(len(padded) - n + 1))
