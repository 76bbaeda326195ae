"""The instructions of prompts, which an answer must not repeat."""

import re
from functools import lru_cache
from pathlib import Path

from components.language.normalise import fold
from components.language.words import all_words
from components.models import calls
from components.models.prompts import FOLDER
from settings import get_settings

_RUN = 8
"""Length of a run of words that an answer does not share with a prompt by chance."""
_PLACEHOLDER = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)


def repeats_instructions(text: str, folder: str = FOLDER) -> bool:
    """Return whether a text repeats a run of words from a prompt, or the fence of this turn's prompts."""
    if calls.current().fence in text:
        return True
    vocabulary, runs = _prompts(get_settings().pipelines_dir / folder)
    text_words = all_words(fold(text))
    streak = 0
    for end, word in enumerate(text_words, 1):
        streak = streak + 1 if word in vocabulary else 0
        # Most words are of no prompt, so that hardly any run has to be put together.
        if streak >= _RUN and tuple(text_words[end - _RUN : end]) in runs:
            return True
    return False


@lru_cache(maxsize=4)
def _prompts(folder: Path) -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """Return all words of the prompts in a folder, and all runs of them. What is filled in is no instruction."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))
    parts = [all_words(fold(part)) for text in texts for part in _PLACEHOLDER.split(text)]
    runs = (tuple(part[start : start + _RUN]) for part in parts for start in range(len(part) - _RUN + 1))
    return frozenset(word for part in parts for word in part), frozenset(runs)
