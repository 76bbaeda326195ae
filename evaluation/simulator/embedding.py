"""Embedding texts without a model: stems and letter groups, each at its own place of the vector."""

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt

from components.language.words import stems

DIMENSIONS = 384
_GRAM = 4


@lru_cache(maxsize=5_000)
def embed(text: str) -> tuple[float, ...]:
    """Return a normalised vector: texts that share words, or parts of words, are near each other.

    Feature hashing with signs (Weinberger et al. 2009), so that collisions cancel out.
    """
    vector = [0.0] * DIMENSIONS
    counted = Counter(stems(text))
    for stem, times in counted.items():
        _add(vector, stem, 1.0 + log(times))
        padded = f"<{stem}>"
        for start in range(len(padded) - _GRAM + 1):
            _add(vector, padded[start : start + _GRAM], 0.3)
    length = sqrt(sum(value * value for value in vector))
    if length == 0.0:
        return (1.0, *vector[1:])
    return tuple(value / length for value in vector)


def _add(vector: list[float], feature: str, weight: float) -> None:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest())
    vector[digest % DIMENSIONS] += weight if digest & (1 << 40) else -weight
