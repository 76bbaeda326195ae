"""Keyboard mashing against words: by letter-pair statistics of Russian and English."""

import re
from functools import lru_cache

from components.language.keyboard import layout
from components.language.letters import letters
from components.language.normalise import fold
from components.language.transliteration import transliterations
from components.language.vocabulary import is_frequent

_WORD = re.compile(r"[^\W\d_]+")
_ROWS = ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_RUN = 4
"""Neighbouring keys in a row that make a word a run of keys: `фыва`, `asdf`, `lkjh`."""
_SHORT = 4
"""Letters up to which anything else may be an abbreviation: СНИЛС, API, kWh."""
_ODD = 4.2
"""Mean cost of a letter pair, in nats, from which a word looks like none: words average 2.5."""


def is_gibberish(text: str) -> bool:
    """Return whether nothing in `text` can be a word, a code or a number, in any layout or alphabet."""
    if any(char.isdigit() for char in text):
        return False
    words = _WORD.findall(text)
    if not words:
        return True
    if len(words) > 1 and all(map(_is_whole_run, words)):
        return True
    if any(_is_word(word) for word in words):
        return False
    return not any(_is_word(word) for reading in _readings(text) for word in _WORD.findall(reading))


def _readings(text: str) -> tuple[str, ...]:
    """Return other possible readings: the other keyboard layout, Russian in Latin letters."""
    retyped = layout(text)
    return (*((retyped,) if retyped else ()), *transliterations(text, limit=1))


@lru_cache(maxsize=4096)
def _is_word(word: str) -> bool:
    folded = fold(word)
    if is_frequent(folded):
        return True
    if len(set(folded)) == 1 and len(folded) > 2:
        return False
    if _is_key_run(folded):
        return False
    if len(folded) <= _SHORT:
        return True
    return min(letters("ru").mean_cost(folded), letters("en").mean_cost(folded)) < _ODD


def _is_whole_run(word: str) -> bool:
    """Return whether a word consists of neighbouring keys; one alone may be an abbreviation, not `qwe zxc`."""
    folded = fold(word)
    is_run = any(folded in row or folded[::-1] in row for row in _ROWS)
    return len(folded) > 2 and is_run and not is_frequent(folded)


def _is_key_run(word: str) -> bool:
    runs = (word[i : i + _RUN] for i in range(len(word) - _RUN + 1))
    return any(run in row or run[::-1] in row for run in runs for row in _ROWS)
