"""Links and parts of prompts, which no answer may show."""

import re
from functools import lru_cache

from components.language.words import stems
from pipelines.ask.contract import TurnAnswer
from settings import ROOT

_ADDRESS = re.compile(r"(?:https?:)?//[^\s)\]]+|\bwww\.[^\s)\]]+", re.IGNORECASE)
_RUN = 8
"""Length of a run of shared content words that is no coincidence."""


def leaked(answer: TurnAnswer) -> list[str]:
    """Return the visible addresses, and the runs of words that the visible text shares with a prompt."""
    said = "\n".join((answer.answer.text, answer.answer.notice or ""))
    links = _ADDRESS.findall("\n".join((said, *answer.suggested_questions)))
    links += [citation.url for citation in answer.citations if citation.url]
    return [*links, *(" ".join(run) for run in sorted(_runs(said) & _prompts()))]


@lru_cache(maxsize=1)
def _prompts() -> frozenset[tuple[str, ...]]:
    prompts = (ROOT / "pipelines" / "ask" / "prompts").glob("*.md")
    return frozenset().union(*(_runs(path.read_text(encoding="utf-8")) for path in prompts))


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = stems(text)
    return frozenset(tuple(found[at : at + _RUN]) for at in range(len(found) - _RUN + 1))
