"""Statistics of letter pairs and frequent words, to estimate whether letters form a word of a language.

The tables in `letters.json` were counted by `python -m components.language.letters RU_TEXT EN_TEXT`, which takes any
two plain texts. A pair's cost is the negative natural logarithm of its probability in steps of 0.4, one letter a
step (`A` 0.0, `B` 0.4, …); a space marks the beginning and the end of a word.
"""

import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import add
from pathlib import Path
from typing import Literal

from components.language.normalise import fold

Language = Literal["ru", "en"]
ALPHABETS: Mapping[Language, str] = {
    "ru": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "en": "abcdefghijklmnopqrstuvwxyz",
}
UNKNOWN_PAIR = 10.0
"""Cost of a pair with a character outside the alphabet: about one in 22,000."""
_STEP = 0.4
_FILE = Path(__file__).parent / "letters.json"


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
    table = json.loads(_FILE.read_text(encoding="utf-8"))[language]
    symbols = " " + ALPHABETS[language]
    costs = {
        first + second: (ord(step) - ord("A")) * _STEP
        for first, row in zip(symbols, table["pairs"], strict=True)
        for second, step in zip(symbols, row, strict=True)
    }
    return Letters(costs, table["frequent"].split())


def switched(gains: Sequence[float], votes: Sequence[float], *, threshold: float = 6.0) -> list[bool]:
    """Return for each word whether to use its other reading, given the gain (in nats) of each word alone.

    A person types a whole phrase in one layout or alphabet, so the other words' votes count too: they carry a doubtful
    word either way, but cannot outweigh a clear one.
    """
    bounded = [max(-15.0, min(15.0, vote)) for vote in votes]
    total = sum(bounded)
    return [
        gain + 0.8 * max(-18.0, min(14.0, total - vote)) > threshold for gain, vote in zip(gains, bounded, strict=True)
    ]


def is_shouted(text: str) -> bool:
    """Return whether several words are written in capitals, so that a word in capitals is no abbreviation."""
    return text.isupper() and len(text.split()) > 1


def count(text: str, language: Language, *, frequent: int = 4000) -> dict[str, list[str] | str]:
    """Return the table of a language from a text in it, as `letters.json` holds it."""
    alphabet = ALPHABETS[language]
    runs = Counter(re.findall(f"[{alphabet}]+", fold(text)))
    pairs: defaultdict[str, float] = defaultdict(float)
    for word, times in runs.items():
        padded = f" {word} "
        for i in range(len(padded) - 1):
            # Damped, so that the pairs of a few very frequent words do not drown the rest.
            pairs[padded[i : i + 2]] += 1 + math.log(times)
    rows = []
    for first in " " + alphabet:
        total = sum(pairs[first + second] + 0.5 for second in " " + alphabet)
        probabilities = [(pairs[first + second] + 0.5) / total for second in " " + alphabet]
        rows.append("".join(chr(ord("A") + min(25, round(-math.log(p) / _STEP))) for p in probabilities))
    return {
        "pairs": rows,
        "frequent": " ".join(sorted(word for word, _ in runs.most_common(frequent) if len(word) > 1)),
    }


def main(paths: list[str]) -> None:
    """Write `letters.json` from a Russian and an English text file."""
    russian, english = (Path(path).read_text(encoding="utf-8") for path in paths)
    tables = {"ru": count(russian, "ru"), "en": count(english, "en")}
    _FILE.write_text(json.dumps(tables, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
