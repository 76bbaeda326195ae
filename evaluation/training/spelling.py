"""Makes the word lists that recover misspelt questions.

`python -m evaluation.training.spelling letters RU_TEXT EN_TEXT` counts letter pairs and frequent words in two plain
texts; `… dictionary RU.dic EN.dic` takes Hunspell dictionaries, whose `.aff` files lie beside them.
"""

import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.language import dictionary as dictionaries
from components.language import letters
from components.language.dictionary import places
from components.language.letters import ALPHABETS, STEP, Language
from components.language.normalise import fold
from components.language.words import analyse

_BITS_PER_STEM = 10
_MIN_LETTERS = 2
_FREQUENT = 4_000


def count(text: str, language: Language) -> dict[str, list[str] | str]:
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
        rows.append("".join(chr(ord("A") + min(25, round(-math.log(p) / STEP))) for p in probabilities))
    return {
        "pairs": rows,
        "frequent": " ".join(sorted(word for word, _ in runs.most_common(_FREQUENT) if len(word) > 1)),
    }


def bloom_filter(stems: Iterable[str]) -> npt.NDArray[np.uint8]:
    distinct = set(stems)
    size = -(-len(distinct) * _BITS_PER_STEM // 8)
    bits: npt.NDArray[np.uint8] = np.zeros(size, dtype=np.uint8)
    for stem in distinct:
        for place in places(stem, size * 8):
            bits[place >> 3] |= 1 << (place & 7)
    return bits


def forms(dictionary: Path) -> Iterator[str]:
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


def write_letters(russian: Path, english: Path) -> None:
    tables = {
        "ru": count(russian.read_text(encoding="utf-8"), "ru"),
        "en": count(english.read_text(encoding="utf-8"), "en"),
    }
    letters.FILE.write_text(json.dumps(tables, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_dictionary(*paths: Path) -> None:
    all_forms = (fold(form) for path in paths for form in forms(path) if form.isalpha() and len(form) >= _MIN_LETTERS)
    np.savez_compressed(dictionaries.FILE, bits=bloom_filter(analyse(word)[0] for word in all_forms))


if __name__ == "__main__":
    table, *files = sys.argv[1:]
    write = write_letters if table == "letters" else write_dictionary
    write(*map(Path, files))
