"""The words that a knowledge base uses, which decide whether a doubtful word is a word at all."""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import OSA

from components.language.letters import ALPHABETS, letters
from components.language.normalise import fold
from components.language.words import MAX_LENGTH, STOP_WORDS, analyse, one_script

_MIN_STEM = 4
_BIT = {letter: 1 << place for place, letter in enumerate("".join(ALPHABETS.values()))}
_OTHER_BIT = 1 << len(_BIT)


class Vocabulary:
    """The words of a knowledge base with the number of passages that hold each. Cheap to create; its index is built on
    first use.

    The index for near words takes eight bytes and a reference for each word and is built when first asked for.

    :param words: folded word to frequency. It is kept, not copied: do not change it afterwards.
    :param stems: their stems; found from the words when not given.
    """

    def __init__(self, words: Mapping[str, int], stems: Collection[str] | None = None) -> None:
        self.words = words
        self._stems = stems

    @cached_property
    def stems(self) -> Collection[str]:
        """Return the stems of the words."""
        if self._stems is not None:
            return self._stems
        return frozenset(analyse(word)[0] for word in self.words)

    def holds(self, word: str) -> bool:
        """Return whether the knowledge base itself uses `word`, in this or another form."""
        folded = fold(one_script(word))
        if folded in self.words:
            return True
        if len(folded) > MAX_LENGTH:
            return False
        stem, _ = analyse(folded)
        return (len(stem) >= _MIN_STEM or stem[-1:].isdigit()) and stem in self.stems

    def knows(self, word: str) -> bool:
        """Return whether `word` is one of the knowledge base's, or a frequent word of Russian or English."""
        return is_frequent(word) or self.holds(word)

    def frequency(self, word: str) -> int:
        """Return the number of passages that contain exactly this folded word."""
        return self.words.get(word, 0)

    @cached_property
    def mass(self) -> int:
        """Return the frequencies of all words together, at least 1."""
        return max(1, sum(self.words.values()))

    def near(self, word: str, errors: int) -> Iterator[tuple[str, int]]:
        """Return the words within `errors` typing errors of a folded word, with their distances: the restricted
        Damerau-Levenshtein distance, in which a transposition counts one.

        Words of about the same length are compared by their letter sets all at once; each error takes at most one
        letter away and brings at most one. The distance is measured for the few that are left.
        """
        words, sets, starts = self._index
        low, high = (
            starts[min(max(length, 0), len(starts) - 1)] for length in (len(word) - errors, len(word) + errors + 1)
        )
        window, typed = sets[low:high], np.uint64(_letter_set(word))
        lost = np.bitwise_count(window & ~typed) <= errors
        brought = np.bitwise_count(typed & ~window) <= errors
        for position in np.flatnonzero(lost & brought).tolist():
            candidate = words[low + position]
            distance = OSA.distance(word, candidate, score_cutoff=errors)
            if distance <= errors:
                yield candidate, distance

    @cached_property
    def _index(self) -> tuple[list[str], npt.NDArray[np.uint64], list[int]]:
        """Return the words by length, their letter sets, and the start of each length."""
        words = sorted(filter(str.isalpha, self.words), key=len)
        sets = np.fromiter(map(_letter_set, words), dtype=np.uint64, count=len(words))
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        longest = len(words[-1]) if words else 0
        return words, sets, np.searchsorted(lengths, np.arange(longest + 2)).tolist()


def _letter_set(word: str) -> int:
    letters = 0
    for letter in word:
        letters |= _BIT.get(letter, _OTHER_BIT)
    return letters


def is_frequent(word: str) -> bool:
    """Return whether `word` is a frequent one of Russian or English in general."""
    folded = fold(word)
    return folded in STOP_WORDS or folded in letters("ru").frequent or folded in letters("en").frequent


EMPTY = Vocabulary({}, frozenset())
"""The empty vocabulary: only frequent words are known."""
