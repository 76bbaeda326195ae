"""Whether a word is one of Russian or English, by the stems of their spelling dictionaries.

The stems are kept in a Bloom filter, `dictionary.npz`: it answers wrongly yes for one word in a hundred, and never
wrongly no. `python -m evaluation.training.spelling dictionary RU.dic EN.dic` makes it from Hunspell dictionaries;
`dictionary.md` names those that ship and their licences.
"""

import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from components.language.normalise import fold
from components.language.words import analyse

FILE = Path(__file__).with_name("dictionary.npz")
_HASHES = 7


@lru_cache(maxsize=20_000)
def is_word(word: str) -> bool:
    """Return whether a word, in any of its forms, is in the dictionaries."""
    stem, stop = analyse(fold(word))
    bits = _filter()
    return stop or all(bits[place >> 3] >> (place & 7) & 1 for place in places(stem, len(bits) * 8))


@lru_cache(maxsize=1)
def _filter() -> bytes:
    with np.load(FILE, allow_pickle=False) as stored:
        return bytes(stored["bits"])


def places(stem: str, size: int) -> Iterator[int]:
    """Yield the bits of a stem (Kirsch and Mitzenmacher 2006: two hashes make all)."""
    encoded = stem.encode()
    first, step = zlib.crc32(encoded), zlib.crc32(encoded[::-1]) | 1
    for number in range(_HASHES):
        yield (first + number * step) % size
