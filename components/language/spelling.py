"""Corrects typing errors against the words that a knowledge base uses."""

import math
from itertools import islice

from components.language.dictionary import is_word
from components.language.letters import is_shouted, letters, like
from components.language.normalise import fold
from components.language.vocabulary import Vocabulary
from components.language.words import Word, words

_MIN_LETTERS = 4  # letters; a shorter word has too many neighbours
_TWO_ERRORS_FROM = 8  # letters
_MAX_WORDS = 20
"""Misspelt words of a text that are corrected, from its start: comparing one with 100,000 words takes 2 ms."""
_NEGATING = ("не", "ни", "un", "in", "im", "il", "ir", "a")

# Nats. Set on the development questions of the benchmark sets, clean and misspelt by program.
_ERROR = 6.5  # price of one typing error
_FIRST_LETTER = 3.0  # and of one in the first letter, which people seldom miss
_UNSEEN = 1.0  # price of a right word that the knowledge base happens not to use


def spelling(text: str, vocabulary: Vocabulary) -> str | None:
    """Return `text` with its misspelt words corrected, or None if there is nothing to correct.

    At most one error in words of 4 to 7 letters, two from 8 on. Codes, numbers, abbreviations, and words that the
    vocabulary or a dictionary holds in any form are left alone.
    """
    corrected = text
    shouted = is_shouted(text)
    misspelt = (word for word in words(text) if (shouted or not word.text.isupper()) and _is_misspelt(word, vocabulary))
    for word in reversed([*islice(misspelt, _MAX_WORDS)]):
        intended = _intended(fold(word.text), vocabulary)
        if intended is not None:
            corrected = corrected[: word.start] + like(word.text, intended) + corrected[word.end :]
    return corrected if corrected != text else None


def _is_misspelt(word: Word, vocabulary: Vocabulary) -> bool:
    """Return whether nothing knows the word."""
    folded = fold(word.text)
    return len(folded) >= _MIN_LETTERS and folded.isalpha() and not vocabulary.knows(folded) and not is_word(folded)


def _intended(word: str, vocabulary: Vocabulary) -> str | None:
    """Return the intended word for a folded unknown `word`, or None if it is too far from any known word.

    A noisy channel: the likeliest known word with its errors against the likelihood that `word` is a right one, which
    its letters tell.
    """
    errors = 1 if len(word) < _TWO_ERRORS_FROM else 2
    prices = {
        candidate: math.log(vocabulary.mass / vocabulary.frequency(candidate))
        + _ERROR * distance
        + (_FIRST_LETTER if candidate[0] != word[0] else 0.0)
        for candidate, distance in vocabulary.near(word, errors)
        if not _turned_round(word, candidate)
    }
    if not prices:
        return None
    best = min(prices, key=lambda candidate: (prices[candidate], candidate))
    right_as_it_is = letters("en" if word.isascii() else "ru").cost(word) + _UNSEEN
    return best if prices[best] < right_as_it_is else None


def _turned_round(word: str, other: str) -> bool:
    """Return whether one word negates the other, such as `немедленно`, which is no misspelt `медленно`."""
    longer, shorter = sorted((word, other), key=len, reverse=True)
    return any(longer == prefix + shorter for prefix in _NEGATING)
