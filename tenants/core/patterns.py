"""Regular expressions that tenants and pipeline authors write, matched in linear time by RE2.

Threat: Python's own matcher backtracks, so that one short pattern and one long question hold the interpreter, and
with it every tenant, for hours. RE2 has no backtracking, and lets other threads run while it matches.
"""

import re
from functools import lru_cache
from typing import Protocol

import re2

_LARGEST_PROGRAM = 5_000
"""Instructions of a compiled pattern. They bound the time of a match: 0.1 s in the longest question."""

_MEMORY = 2**20

# To RE2 a word is of Latin letters alone. Its classes of all Unicode's letters are a hundred times as large.
_WORD = "A-Za-zА-Яа-яЁё0-9_"
_TOKEN = re.compile(r"\\(.)|(\[\^?\]?)|(\])", re.DOTALL)


class Match(Protocol):
    """A match of a pattern."""

    def group(self) -> str:
        """Return the whole match."""


class Pattern(Protocol):
    """A compiled pattern; letters match in either case."""

    def search(self, text: str) -> Match | None:
        """Return the first match in `text`."""

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole text."""


@lru_cache(maxsize=1_024)
def compiled(pattern: str) -> Pattern:
    """Compile a pattern in RE2's syntax, with Russian letters in `\\w`.

    :raises ValueError: invalid, too large, or not supported by RE2 (backreferences, lookaround).
    """
    options = re2.Options()
    options.case_sensitive = False
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        program = re2.compile(_with_russian_words(pattern), options)
    except re2.error:
        raise ValueError("pattern") from None
    if program.programsize > _LARGEST_PROGRAM:
        raise ValueError("pattern")
    found: Pattern = program
    return found


def _with_russian_words(pattern: str) -> str:
    in_class = False

    def replaced(token: re.Match[str]) -> str:
        nonlocal in_class
        escaped, opening, _closing = token.groups()
        if escaped == "w":
            return _WORD if in_class else f"[{_WORD}]"
        if escaped == "W" and not in_class:
            return f"[^{_WORD}]"
        if escaped is None:
            in_class = in_class or opening is not None if opening else False
        return token.group()

    return _TOKEN.sub(replaced, pattern)
