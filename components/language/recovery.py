"""Recovers questions typed in the wrong keyboard layout, in Latin letters, or with typing errors.

Three repairs, each usable alone (`layout`, `transliterations`, `spelling`), and `recover`, which chooses. All are pure
and judge words by the tenant's `Vocabulary`; make one for each revision of a knowledge base with `vocabulary_of`.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from components.language.keyboard import layout
from components.language.spelling import spelling
from components.language.transliteration import transliterations
from components.language.vocabulary import Vocabulary, is_frequent
from components.language.words import words

_RECOVERED_FROM = 1 / 3
"""Least share of frequent words that shows a message to be in its right layout and alphabet."""
_MAX_LENGTH = 400

Kind = Literal["layout", "transliteration", "typo"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A repaired question. `kind` is the repair; `others` are less likely readings worth a search."""

    kind: Kind
    text: str
    others: tuple[str, ...] = ()


def recover(question: str, vocabulary: Vocabulary) -> Recovered | None:
    """Return the repaired `question`, or None if every word is known or no better reading exists.

    One kind of repair at a time: a layout or an alphabet spells the very keys that were pressed, while each corrected
    word is a guess.
    """
    if all(vocabulary.knows(word.text) for word in words(question)):
        return None
    if (retyped := layout(question, vocabulary)) is not None:
        return Recovered("layout", retyped)
    if readings := transliterations(question, vocabulary):
        return Recovered("transliteration", readings[0], readings[1:])
    corrected = spelling(question, vocabulary)
    return Recovered("typo", corrected) if corrected is not None else None


def vocabulary_of(words: Mapping[str, int], stems: Collection[str] | None = None) -> Vocabulary:
    """Return the vocabulary over these very mappings, the same object again while they are in use.

    :param words: folded word to the number of passages that hold it, unchanged while it is in use.
    :param stems: the stems of those words; found when not given.
    """
    for recent in tuple(_recent):  # other threads append meanwhile
        if recent.words is words and (stems is None or recent.stems is stems):
            return recent
    vocabulary = Vocabulary(words, stems)
    _recent.append(vocabulary)
    return vocabulary


# Vocabularies of recently served tenants. It references each tenant's own mappings, so tenants share no data.
_recent: deque[Vocabulary] = deque(maxlen=16)


def repair_layout(question: str) -> str:
    """Correct the keyboard layout or alphabet of a question where its letters alone show the mistake."""
    question_words = words(question)
    frequent = sum(is_frequent(word.text) for word in question_words)
    if len(question) > _MAX_LENGTH or frequent >= _RECOVERED_FROM * len(question_words):
        return question
    if (retyped := layout(question)) is not None:
        return retyped
    readings = transliterations(question, limit=1)
    return readings[0] if readings else question
