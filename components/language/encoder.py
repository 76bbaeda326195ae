"""Sparse vectors of texts: BM25 (Robertson & Zaragoza 2009) over stems, character n-grams and heading stems.

The parts share one vector. Their terms are hashed with a prefix, so no two parts share dimensions. A passage's weights
hold the saturated frequency of a term times the share of its part; a question's are 1, those of an identifier more, and
the index multiplies by its own inverse document frequency. One sparse query therefore scores all three parts.

Each word's dimensions are cached as the bytes of an array: joining bytes and sorting numbers costs half of counting
objects.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from components.language.encoder_settings import EncoderSettings, PartName, PassageField
from components.language.identifiers import codes
from components.language.normalise import fold
from components.language.words import all_words, analyse, one_script

_Dimensions: TypeAlias = npt.NDArray[np.uint32]
_Weights: TypeAlias = npt.NDArray[np.float64]
_OfWord: TypeAlias = Callable[[str], bytes]

_PREFIX: Mapping[PartName, str] = {"stems": "", "grams": "g:", "headings": "h:"}
_CODE_WEIGHT = 3.0
"""Weight of an identifier's terms in a question: "E20" matters more than "on the display"."""


def encode_passage(title: str, heading: str, text: str, settings: EncoderSettings) -> dict[int, float]:
    """Return the vector of a passage. `heading` is the path below the title."""
    dimensions, weights = encode_words(passage_words(title, heading, text), settings)
    return dict(zip(dimensions.tolist(), weights.tolist(), strict=True))


def passage_words(title: str, heading: str, text: str) -> dict[PassageField, list[str]]:
    """Return the words of a passage as written, by field."""
    return {"title": all_words(title), "heading": all_words(heading), "text": all_words(text)}


def encode_words(
    words: Mapping[PassageField, Sequence[str]], settings: EncoderSettings
) -> tuple[_Dimensions, _Weights]:
    """Return the vector of a passage whose words are known: its dimensions, ascending, and their weights."""
    parts = [_saturated(name, words, settings) for name in settings.parts]
    dimensions = np.concatenate([dimensions for dimensions, _ in parts])
    weights = np.concatenate([weights for _, weights in parts])
    order = np.argsort(dimensions)
    dimensions, weights = dimensions[order], np.round(weights[order], 5)
    # Two terms of different parts with one hash: once in some 10,000 passages.
    first = _run_starts(dimensions)
    return dimensions[first], np.add.reduceat(weights, first) if len(first) else weights


def encode_query(text: str, settings: EncoderSettings) -> dict[int, float]:
    """Return the vector of a question: each distinct term once. It is empty without a content word."""
    vector: dict[int, float] = {}
    for word in dict.fromkeys(all_words(text)):
        weight = _CODE_WEIGHT if codes(word) else 1.0
        for name in settings.parts:
            for dimension in _dimensions(_terms(name, settings.gram_sizes), (word,)).tolist():
                vector[dimension] = max(weight, vector.get(dimension, 0.0))
    return vector


def _saturated(
    name: PartName, words: Mapping[PassageField, Sequence[str]], settings: EncoderSettings
) -> tuple[_Dimensions, _Weights]:
    part = settings.parts[name]
    of_word = _terms(name, settings.gram_sizes)
    dimensions = np.sort(_dimensions(of_word, (word for field in part.fields for word in words[field])))
    first = _run_starts(dimensions)
    counts = np.diff(np.append(first, len(dimensions)))
    length_norm = settings.k1 * (1 - settings.b + settings.b * len(dimensions) / part.average_length)
    return dimensions[first], part.share * counts * (settings.k1 + 1) / (counts + length_norm)


def _run_starts(ordered: _Dimensions) -> npt.NDArray[np.intp]:
    """Return the start of each run of equal numbers. `numpy.unique` takes half as long again."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else np.arange(0)


def _dimensions(of_word: _OfWord, words: Iterable[str]) -> _Dimensions:
    return np.frombuffer(b"".join(map(of_word, words)), dtype=np.uint32)


@lru_cache(maxsize=8)
def _terms(name: PartName, gram_sizes: tuple[int, ...]) -> _OfWord:
    """Return what finds the dimensions of a word: CRC-32 of its stem, or of its n-grams with its ends marked by a
    space. A function word has none."""
    seed = crc32(_PREFIX[name].encode())

    @lru_cache(maxsize=200_000)
    def dimensions(word: str) -> bytes:
        stem, stop = analyse(word)
        if stop:
            return b""
        terms: Iterable[str] = (stem,)
        if name == "grams":
            padded = f" {fold(one_script(word))} "
            terms = (padded[start : start + size] for size in gram_sizes for start in range(len(padded) - size + 1))
        return array("I", (crc32(term.encode(), seed) for term in terms)).tobytes()

    return dimensions
