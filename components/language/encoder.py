"""Sparse vectors of texts: BM25 (Robertson & Zaragoza 2009) over stems, character n-grams and headings.

Only the passage's half of BM25 is computed here; the index multiplies by its own inverse document frequency. Each
word's dimensions are cached as the bytes of an array: joining bytes and sorting numbers costs half of counting objects.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from components.language.encoder_settings import EncoderSettings, PassageField
from components.language.normalise import fold
from components.language.words import all_words, analyse, one_script

_Dimensions: TypeAlias = npt.NDArray[np.uint32]
_Weights: TypeAlias = npt.NDArray[np.float64]
_OfWord: TypeAlias = Callable[[str], bytes]


def encode_passage(title: str, heading: str, text: str, settings: EncoderSettings) -> dict[str, dict[int, float]]:
    """The vectors of a passage. `heading` is the path below the title."""
    vectors = encode_words(passage_words(title, heading, text), settings)
    return {
        name: dict(zip(dimensions.tolist(), weights.tolist(), strict=True))
        for name, (dimensions, weights) in vectors.items()
    }


def passage_words(title: str, heading: str, text: str) -> dict[PassageField, list[str]]:
    """The words of a passage as written, by field."""
    return {"title": all_words(title), "heading": all_words(heading), "text": all_words(text)}


def encode_words(
    words: Mapping[PassageField, Sequence[str]], settings: EncoderSettings
) -> dict[str, tuple[_Dimensions, _Weights]]:
    """The vectors of a passage whose words are known: of each the dimensions, ascending, and their weights."""
    grams = _grams(settings.gram_sizes)
    vectors: dict[str, tuple[_Dimensions, _Weights]] = {}
    for name, vector in settings.vectors.items():
        vector_words = [word for field in vector.fields for word in words[field]]
        dimensions = _dimensions(grams if name == "grams" else _stem, vector_words)
        vectors[name] = _saturated(dimensions, vector.average_length, settings)
    return vectors


def encode_query(text: str, settings: EncoderSettings) -> dict[str, dict[int, float]]:
    """The vectors of a question: each distinct stem or gram once. All empty when it has no content word."""
    words = all_words(text)
    stems = _once(_dimensions(_stem, words))
    return {"text-sparse": stems, "grams": _once(_dimensions(_grams(settings.gram_sizes), words)), "headings": stems}


def _once(dimensions: _Dimensions) -> dict[int, float]:
    return dict.fromkeys(dimensions.tolist(), 1.0)


def _saturated(
    dimensions: _Dimensions, average_length: float, settings: EncoderSettings
) -> tuple[_Dimensions, _Weights]:
    ordered = np.sort(dimensions)
    # Where each run of equal numbers begins: `numpy.unique` takes half as long again.
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else np.arange(0)
    counts = np.diff(np.append(begins, len(ordered)))
    length_norm = settings.k1 * (1 - settings.b + settings.b * len(dimensions) / average_length)
    return ordered[begins], np.round(counts * (settings.k1 + 1) / (counts + length_norm), 5)


def _dimensions(of_word: _OfWord, words: Iterable[str]) -> _Dimensions:
    return np.frombuffer(b"".join(map(of_word, words)), dtype=np.uint32)


def dimension(term: str) -> int:
    """The vector dimension of a stem or gram: its CRC-32; 100,000 terms meet about once in 2^32 places."""
    return crc32(term.encode())


def _packed(terms: Iterable[str]) -> bytes:
    return array("I", map(dimension, terms)).tobytes()


@lru_cache(maxsize=200_000)
def _stem(word: str) -> bytes:
    """The dimension of a word's stem; none for a function word."""
    stem, stop = analyse(word)
    return b"" if stop else _packed([stem])


@lru_cache(maxsize=4)
def _grams(sizes: tuple[int, ...]) -> _OfWord:
    """What finds the dimensions of a word's n-grams, its ends marked by a space; none for a function word."""

    @lru_cache(maxsize=200_000)
    def grams(word: str) -> bytes:
        if analyse(word)[1]:
            return b""
        padded = f" {fold(one_script(word))} "
        return _packed(padded[i : i + n] for n in sizes for i in range(len(padded) - n + 1))

    return grams
