"""Statistics of letter pairs and frequent words, to estimate whether letters form a word of a language.

The tables in `letters.json` were counted by `python -m evaluation.training.spelling letters RU_TEXT EN_TEXT` from any
two plain texts. A pair's cost is the negative natural logarithm of its probability in steps of 0.4, one letter a
step (`A` 0.0, `B` 0.4, …); a space marks the beginning and the end of a word.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from operator import add
from pathlib import Path
from typing import Literal

Language = Literal["ru", "en"]
ALPHABETS: Mapping[Language, str] = {
    "ru": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "en": "abcdefghijklmnopqrstuvwxyz",
}
UNKNOWN_PAIR = 10.0
"""Cost of a pair with a character outside the alphabet: about one in 22,000."""
STEP = 0.4
_SWITCHED_FROM = 6.0
"""Least gain, in nats, of another reading."""
FILE = Path(__file__).parent / "letters.json"


class Letters:
    """Letter pairs of one language."""

    def __init__(self, costs: Mapping[str, float], frequent: Iterable[str]) -> None:
        self.costs = costs
        self.frequent = frozenset(frequent)

    def cost(self, word: str) -> float:
        """Negative log-likelihood of a folded word, in nats, its beginning and end included. Lower is likelier."""
        padded = f" {word} "
        return sum(map(self.costs.get, map(add, padded, padded[1:]), repeat(UNKNOWN_PAIR)))

    def mean_cost(self, word: str) -> float:
        """Return the cost per letter pair: about 2.5 for words of the language, 4 or more for anything else."""
        return self.cost(word) / (len(word) + 1)


@lru_cache(maxsize=2)
def letters(language: Language) -> Letters:
    """Return the statistics of a language, read once."""
    table = json.loads(FILE.read_text(encoding="utf-8"))[language]
    symbols = " " + ALPHABETS[language]
    costs = {
        first + second: (ord(step) - ord("A")) * STEP
        for first, row in zip(symbols, table["pairs"], strict=True)
        for second, step in zip(symbols, row, strict=True)
    }
    return Letters(costs, table["frequent"].split())


@dataclass(frozen=True, slots=True)
class Reading:
    """Other readings of a word, the likeliest first: their gain (in nats) and the word's vote for its neighbours."""

    start: int
    end: int
    texts: tuple[str, ...]
    gain: float
    vote: float


def switched(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings to use in place of what was typed.

    A person types a whole phrase in one layout or alphabet, so the other words' votes count too: they carry a doubtful
    word either way, but cannot outweigh a clear one.
    """
    votes = [max(-15.0, min(15.0, one.vote)) for one in readings]
    total = sum(votes)
    return [
        one
        for one, vote in zip(readings, votes, strict=True)
        if one.gain + 0.8 * max(-18.0, min(14.0, total - vote)) > _SWITCHED_FROM
    ]


def like(typed: str, word: str) -> str:
    """Return `word` in the letter case of `typed`."""
    if len(typed) > 1 and typed.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def is_shouted(text: str) -> bool:
    """Return whether several words are written in capitals, so that a word in capitals is no abbreviation."""
    return text.isupper() and len(text.split()) > 1
