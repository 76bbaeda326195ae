"""What a language model has been told to do, and must not repeat."""

import re
from functools import lru_cache
from pathlib import Path

from components.language.normalise import fold
from components.language.words import all_words
from components.models import calls
from settings import get_settings

_RUN = 8
"""Words in a row that no answer has in common with a prompt by chance."""
_PLACEHOLDER = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)


def repeats_instructions(said: str) -> bool:
    """Whether a text holds some words of a prompt in a row, or what fences off the blocks of this turn's prompts."""
    known = _runs_of_prompts(get_settings().pipelines_dir / "ask" / "prompts")
    return calls.current().fence in said or (bool(known) and not known.isdisjoint(_runs(said)))


@lru_cache(maxsize=4)
def _runs_of_prompts(folder: Path) -> frozenset[int]:
    """Hashes of all runs of words in the prompts of a folder. What is filled in is no instruction."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))
    return frozenset(run for text in texts for part in _PLACEHOLDER.split(text) for run in _runs(part))


def _runs(text: str) -> frozenset[int]:
    words = all_words(fold(text))
    return frozenset(hash(tuple(words[start : start + _RUN])) for start in range(len(words) - _RUN + 1))
