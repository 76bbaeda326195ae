"""Whether a word is one of Russian or English, by the stems of their spelling dictionaries.

The stems are kept in a Bloom filter, `dictionary.npz`: it answers wrongly yes for one word in a hundred, and never
wrongly no. `python -m components.language.dictionary RU.dic EN.dic` makes it from Hunspell dictionaries, whose `.aff`
files lie beside them; `dictionary.md` names those that ship and their licences.
"""

import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.language.normalise import fold
from components.language.words import analyse

_FILE = Path(__file__).with_name("dictionary.npz")
_BITS_PER_STEM = 10
_HASHES = 7
_MIN_LETTERS = 2


@lru_cache(maxsize=20_000)
def is_word(word: str) -> bool:
    """Return whether a word, in any of its forms, is in the dictionaries."""
    stem, stop = analyse(fold(word))
    bits = _filter()
    return stop or all(bits[place >> 3] >> (place & 7) & 1 for place in _places(stem, len(bits) * 8))


@lru_cache(maxsize=1)
def _filter() -> bytes:
    with np.load(_FILE, allow_pickle=False) as stored:
        return bytes(stored["bits"])


def _places(stem: str, size: int) -> Iterator[int]:
    """Yield the bits of a stem (Kirsch and Mitzenmacher 2006: two hashes make all)."""
    encoded = stem.encode()
    first, step = zlib.crc32(encoded), zlib.crc32(encoded[::-1]) | 1
    for number in range(_HASHES):
        yield (first + number * step) % size


def bloom_filter(stems: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return the bits of the filter that holds these stems."""
    distinct = set(stems)
    size = -(-len(distinct) * _BITS_PER_STEM // 8)
    bits: npt.NDArray[np.uint8] = np.zeros(size, dtype=np.uint8)
    for stem in distinct:
        for place in _places(stem, size * 8):
            bits[place >> 3] |= 1 << (place & 7)
    return bits


def forms(dictionary: Path) -> Iterator[str]:
    """Yield every form of every word of a Hunspell dictionary, one affix at a time."""
    affixes: dict[str, list[tuple[bool, str, str, re.Pattern[str]]]] = {}
    for line in dictionary.with_suffix(".aff").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if len(fields) < 5 or fields[0] not in ("SFX", "PFX"):
            continue
        suffix = fields[0] == "SFX"
        stripped, added = (part if part != "0" else "" for part in (fields[2], fields[3].partition("/")[0]))
        condition = re.compile(f"{fields[4]}\\Z" if suffix else fields[4])
        affixes.setdefault(fields[1], []).append((suffix, stripped, added, condition))
    for line in dictionary.read_text(encoding="utf-8").splitlines()[1:]:
        word, _, flags = line.partition("/")
        yield word
        for flag in flags.split("\t")[0].strip():
            for suffix, stripped, added, condition in affixes.get(flag, ()):
                if suffix and word.endswith(stripped) and condition.search(word):
                    yield word[: len(word) - len(stripped)] + added
                elif not suffix and word.startswith(stripped) and condition.match(word):
                    yield added + word[len(stripped) :]


if __name__ == "__main__":
    all_forms = (form for path in sys.argv[1:] for form in forms(Path(path)))
    words = (fold(form) for form in all_forms if form.isalpha() and len(form) >= _MIN_LETTERS)
    np.savez_compressed(_FILE, bits=bloom_filter(analyse(word)[0] for word in words))
    print(f"{_FILE.name}: {_FILE.stat().st_size} bytes")
