"""Detects text that instructs the assistant: in a question, in a document, in a file's name.

A filter of the obvious, not a proof. `injection.yaml` holds the patterns and says how they are written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import re2

from components.language.normalise import clean, fold
from components.language.words import one_script
from components.language.yaml_files import read_yaml

PATTERNS = Path(__file__).with_name("injection.yaml")

_SPACES = re.compile(r"[ \t]{2,}|\t")
# "i g n o r e": letters set apart, three or more in a row.
_SPACED = re.compile(r"(?<!\w)(?:[^\W\d_][ .\-_*]){3,}[^\W\d_](?!\w)")
# Only a word of two scripts is in disguise. Most texts have none, and words are slow to go through.
_TWO_SCRIPTS = re.compile("[a-z][а-я]|[а-я][a-z]")
_WORD = re.compile(r"[^\W\d_]+")


def plain(text: str) -> str:
    """Return `text` without disguise: folded, one space, one script a word, letters set apart joined."""
    folded = _SPACES.sub(" ", fold(clean(text)))
    joined = _SPACED.sub(lambda match: re.sub(r"[ .\-_*]", "", match.group()), folded)
    if not _TWO_SCRIPTS.search(joined):
        return joined
    return _WORD.sub(lambda match: one_script(match.group()), joined)


@lru_cache(maxsize=1)
def patterns() -> Mapping[str, re.Pattern[str]]:
    """Return the patterns of instructions in plain text, by category."""
    stored = read_yaml(PATTERNS)
    return {category: re.compile(joined) for category, joined in alternatives(stored)}


def orders(text: str, spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the parts of a document's text that instruct the assistant, as indices into `spans`.

    :param spans: (start, end) character offsets into `text`, in order. Of an order that begins in one and ends in the
        next, both are named.
    """
    if not _triggered(plain(text)):
        return frozenset()
    parts = [plain(text[start:end]) for start, end in spans]
    places = {place for place, part in enumerate(parts) if _is_order(part)}
    for place in range(len(parts) - 1):
        pair = {place, place + 1}
        if not pair & places and _is_order(" ".join(parts[place : place + 2])):
            places |= pair
    return frozenset(places)


@lru_cache(maxsize=4_096)
def gives_orders(text: str) -> bool:
    """Return whether a short text of a document, such as its title, instructs the assistant.

    Cached, because documents share headings, folders and parts of names.
    """
    return _is_order(plain(text))


def _is_order(part: str) -> bool:
    return _triggered(part) and any(form.search(part) for form in _for_documents()[1])


def _triggered(text: str) -> bool:
    # Names of files may hold bytes that are no text.
    return _for_documents()[0].search(text.encode(errors="replace")) is not None


@lru_cache(maxsize=1)
def _for_documents() -> tuple[re.Pattern[bytes], tuple[re.Pattern[str], ...]]:
    stored = read_yaml(PATTERNS)
    # RE2 finds any of some hundred words in a quarter of the time.
    triggers: re.Pattern[bytes] = re2.compile("|".join(map(re.escape, stored["triggers"])))
    further = alternatives({**stored, "patterns": stored["documents"]})
    return triggers, (*patterns().values(), *(re.compile(joined) for _, joined in further))


def alternatives(stored: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[tuple[str, str]]:
    """Yield the `patterns` of a file, those of a category in one, its `words` put in."""
    for category, forms in stored["patterns"].items():
        joined = "|".join(f"(?:{form})" for form in forms)
        for name, choice in stored["words"].items():
            joined = joined.replace("{" + name + "}", str(choice))
        yield category, joined
