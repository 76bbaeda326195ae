"""Features of a message for the intent classifier: hashed stems, stem pairs and character n-grams.

Hashing needs no stored vocabulary, so the model file is one small matrix.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from components.language.normalise import clean, fold
from components.language.words import words

DIMENSIONS = 1 << 15
MAX_LENGTH = 400
"""Maximum length of the text to classify. The intent shows early; a pasted log only dilutes it."""
_CHARACTERS = 4
_NUMBER = re.compile(r"[\W_]*(?:\[[a-z]+\]|(?<![^\W_])[^\W\d_]{0,8}[-_]?\d[\w.-]*|[*•#xXхХ]{3,}\w*)")
"""A number with its prefix: `12345`, `AB-12`, `[card]`, `****1234`."""
_NUMBERS = 2
_SPACE = re.compile(r"\W+")
_NOT = re.compile(r"(?<=[a-z])n['’]t\b", re.IGNORECASE)
"""A contracted negation: "doesn't" is read as "does not"."""


def indices(text: str) -> npt.NDArray[np.int64]:
    """Return the distinct dimensions (0 to `DIMENSIONS` - 1) that `text` switches on, ascending."""
    plain = _with_few_numbers(_NOT.sub(" not", clean(text)))
    hashed = {zlib.crc32(feature.encode()) % DIMENSIONS for feature in _named(plain)}
    return np.fromiter(sorted(hashed), dtype=np.int64, count=len(hashed))


def features(text: str) -> npt.NDArray[np.float32]:
    """Return the features of a text as a vector of length 1."""
    active = indices(text)
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    vector[active] = max(1, len(active)) ** -0.5
    return vector


def _with_few_numbers(text: str) -> str:
    """Return the start of the text with only its first numbers, codes and masks: further ones do not change the intent,
    such as the cancellation of twenty orders."""
    ends = [match.end() for match in islice(_NUMBER.finditer(text), _NUMBERS)]
    if len(ends) == _NUMBERS:
        text = text[: ends[-1]] + _NUMBER.sub("", text[ends[-1] :])
    return text[:MAX_LENGTH]


def _named(text: str) -> Iterator[str]:
    stems = [word.stem for word in words(text)]
    yield from (f"w {stem}" for stem in stems)
    yield from (f"p {first} {second}" for first, second in zip(["^", *stems], [*stems, "$"], strict=True))
    # Character runs see through endings and typing errors.
    padded = f" {_SPACE.sub(' ', fold(text)).strip()} "
    yield from (padded[i : i + _CHARACTERS] for i in range(len(padded) - _CHARACTERS + 1))
    if "?" in text:
        yield "?"
    if "!" in text:
        yield "!"
