"""Typing mistakes in questions. Every generator is a pure function of its input and a seed."""

import random
import re
from collections.abc import Collection, Sequence

from components.language.identifiers import codes

_WORD = re.compile(r"[^\W\d_]{4,}")
_LETTERS = {"ru": "абвгдежзийклмнопрстуфхцчшщыьэюя", "en": "abcdefghijklmnopqrstuvwxyz"}
_RUSSIAN_KEYS = "йцукенгшщзхъфывапролджэячсмитьбюё" + "ЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮЁ" + '.,?";:№'
_LATIN_KEYS = "qwertyuiop[]asdfghjkl;'zxcvbnm,.`" + 'QWERTYUIOP{}ASDFGHJKL:"ZXCVBNM<>~' + "/?&@$^#"
_TO_LATIN_KEYS = str.maketrans(_RUSSIAN_KEYS, _LATIN_KEYS)
_TRANSLITERATION = {
    "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "е": "e", "ж": "zh", "з": "z", "и": "i", "к": "k", "л": "l",
    "м": "m", "н": "n", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "у": "u", "ф": "f", "ч": "ch", "ш": "sh",
    "ъ": "", "э": "e",
}  # fmt: skip
_CHOICES = {
    "ё": ("e", "yo"), "й": ("y", "i", "j"), "х": ("h", "kh"), "ц": ("c", "ts"), "щ": ("sch", "shch"), "ы": ("y", "i"),
    "ь": ("", "'"), "ю": ("yu", "ju"), "я": ("ya", "ja"),
}  # fmt: skip
"""Letters with several common transliterations; each writer uses one of them throughout."""


def typos(text: str, count: int, seed: int) -> str:
    """Make `count` typing mistakes, each in another word of four letters or more, as far as there are such words.

    A mistake drops, doubles, replaces or swaps one letter other than the first. Codes and numbers are not changed.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible noise, not a secret
    spans = [match.span() for match in _WORD.finditer(text) if not codes(match.group())]
    if not spans:
        return text
    misspelt = rng.sample(spans, min(count, len(spans)))
    for start, end in sorted(misspelt, reverse=True):
        text = text[:start] + _slip(text[start:end], rng) + text[end:]
    return text


def _slip(word: str, rng: random.Random) -> str:
    position = rng.randrange(1, len(word) - 1)
    kind = rng.choice(("drop", "double", "replace", "swap"))
    before, letter, after = word[:position], word[position], word[position + 1 :]
    if kind == "drop":
        return before + after
    if kind == "swap" and after[0] != letter:
        return before + after[0] + letter + after[1:]
    if kind == "replace":
        alphabet = _LETTERS["en" if letter.isascii() else "ru"]
        return before + rng.choice(alphabet.replace(letter.lower(), "")) + after
    return before + letter + letter + after


def wrong_layout(text: str) -> str:
    """Russian typed with the English layout on, as a Windows keyboard gives it: `как` becomes `rfr`, `?` becomes `&`.

    Latin words stay: they were meant to be Latin.
    """
    return text.translate(_TO_LATIN_KEYS)


def transliterated(text: str, seed: int) -> str:
    """Russian spelled with Latin letters, the way people do it: no standard, but one spelling throughout."""
    rng = random.Random(seed)  # noqa: S311 - reproducible noise, not a secret
    table = _TRANSLITERATION | {letter: rng.choice(ways) for letter, ways in _CHOICES.items()}
    spelled = ""
    for character in text:
        latin = table.get(character.lower(), character)
        spelled += latin.capitalize() if character.isupper() and character.lower() in table else latin
    return spelled


def near_misses(existing: Collection[str], templates: Sequence[str], count: int, seed: int) -> list[tuple[str, str]]:
    """Return `count` (code, question) pairs with an unknown code similar to a known one: E20 gives E21, F20, E2, E200.

    :param templates: questions with a `{code}` in them.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible noise, not a secret
    unavailable = set(existing)
    fresh = sorted({variant for code in existing for variant in _neighbours(code)} - unavailable)
    rng.shuffle(fresh)
    pairs = [(code, template.format(code=code)) for template in templates for code in fresh]
    return [pairs[i] for i in sorted(rng.sample(range(len(pairs)), min(count, len(pairs))))]


def _neighbours(code: str) -> set[str]:
    match = re.fullmatch(r"([A-Z]+)(-?)(\d+)", code)
    if match is None:
        return set()
    letters, dash, digits = match.groups()
    number = int(digits)
    neighbours = {number + 1, number - 1, number + 10, number - 10, number * 10, number * 10 + 1, number // 10}
    swapped = {f"{letters}{dash}{digits[::-1]}", f"{letters}{dash}{digits[0]}{digits}"}
    shifted = {chr(ord(letters[-1]) + step) for step in (-1, 1)} & set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    relettered = {f"{letters[:-1]}{letter}{dash}{digits}" for letter in shifted}
    return {f"{letters}{dash}{n}" for n in neighbours if n > 0} | swapped | relettered
