"""The guard: messages that try to command the assistant instead of asking it.

The threat: a visitor who types orders ("ignore your instructions", "you are now …", "print your system prompt") to make
the assistant speak for someone else, show its configuration or another customer's data. The extractive engine cannot be
commanded, a language model can; the same guard protects both. It filters obvious attempts and proves nothing: answers
still pass citation and claim checks.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from haystack import component

from components.language.injection import alternatives, patterns, plain
from components.language.yaml_files import read_yaml
from tenants.core.patterns import compiled

MAX_LENGTH = 2000


class _Pattern(Protocol):
    def search(self, text: str, /) -> object | None: ...


@component
class Guard:
    """Block prompt injection and abuse of the assistant, in Russian and English.

    :param patterns: path of a YAML file with `words` and `patterns` by category, in the syntax of RE2; None for Opora's
        own file.
    :param allow: categories that are let through (`override`, `persona`, `extraction`, `foreign_data`, `markup`).
    """

    def __init__(self, patterns: str | None = None, allow: list[str] | None = None) -> None:
        self.patterns = patterns
        self.allow = allow or []
        if unknown := set(self.allow) - set(self._compiled()):
            raise ValueError(f"no such categories: {sorted(unknown)}; there are {', '.join(self._compiled())}")

    def warm_up(self) -> None:
        """Compile the patterns, once per file."""
        self._compiled()

    @component.output_types(question=str, blocked=str)
    def run(self, question: str) -> dict[str, str]:
        """Return the `question` unchanged, or the category of the offence under `blocked`."""
        offence = self.offence(question)
        return {"question": question} if offence is None else {"blocked": offence}

    def offence(self, text: str) -> str | None:
        """Return the category that `text` falls under, or None."""
        folded = plain(text[:MAX_LENGTH])
        for category, pattern in self._compiled().items():
            if category not in self.allow and pattern.search(folded):
                return category
        return None

    def _compiled(self) -> Mapping[str, _Pattern]:
        return _patterns_of(Path(self.patterns)) if self.patterns else patterns()


@lru_cache(maxsize=8)
def _patterns_of(path: Path) -> Mapping[str, _Pattern]:
    """Compile custom patterns, which have not been checked for catastrophic backtracking."""
    return {category: compiled(joined) for category, joined in alternatives(read_yaml(path))}
