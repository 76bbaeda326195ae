"""Normalises text: Unicode form, invisible characters, letter case, ё and е, look-alike letters."""

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_BREAK = re.compile("\r\n|[\r\u0085\u2028\u2029\x0b\x0c]")
_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNCLEAN = re.compile(
    f"[{''.join(part.pattern.strip('[]') for part in (_INVISIBLE, _CONTROL, _SPACE))}\u0085\u2028\u2029]"
)

_MOST_MARKS = 30
"""Combining marks in a row (UAX 15, stream-safe text). Sorting longer rows takes quadratic time in `unicodedata`."""
_SIGNS = re.compile(rf"[^\w\s]{{{_MOST_MARKS + 1},}}")

CYRILLIC_LOOKALIKES = str.maketrans("АВЕКМНОРСТУХаеорсухк", "ABEKMHOPCTYXaeopcyxk")
"""Cyrillic letters that are drawn like Latin ones; what a person types into a code without noticing."""
LATIN_LOOKALIKES = str.maketrans("ABEKMHOPCTYXaeopcyxk", "АВЕКМНОРСТУХаеорсухк")


def clean(text: str) -> str:
    """Normalise text for storing and quoting: NFC, no invisible characters, plain spaces and `\\n` line breaks.

    Idempotent. A decomposed `й` (и + breve) becomes one letter; soft hyphens and zero-width characters, which split
    words for a search engine and hide text from a reader, are dropped.
    """
    text = _SIGNS.sub(_with_few_marks, text)
    # Most texts are clean, because they were cleaned before: telling so takes a fifth of the time.
    if not _UNCLEAN.search(text) and unicodedata.is_normalized("NFC", text):
        return text
    # Twice in this order: dropping an invisible character can bring a letter and its combining mark together.
    text = unicodedata.normalize("NFC", _SIGNS.sub(_with_few_marks, _INVISIBLE.sub("", text)))
    text = _LINE_BREAK.sub("\n", text)
    return _CONTROL.sub("", _SPACE.sub(" ", text))


def _with_few_marks(signs: re.Match[str]) -> str:
    if signs[0].isascii():
        return signs[0]
    kept, marks = [], 0
    for char in signs[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def fold(text: str) -> str:
    """Lower case with ё as е. Keeps the length, so that offsets into the result are offsets into `text`."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return lowered.replace("ё", "е")
