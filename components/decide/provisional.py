"""A text that is told while it is written: not yet held against the evidence, but to the rules of what may be said."""

import re

from components.decide.answer_guard import AnswerGuard

# Links, telephone numbers and Markdown end before a plain word; up to there a text can be judged.
_SETTLED = re.compile(r"(?:.*\s)?[^\W\d]+[,.!?;:]?\s+", re.DOTALL)
_MOST_HELD = 400
_LOOKED_BACK = 200


class ProvisionalText:
    """Passes a text on as it comes, some words late: without foreign links and strangers' personal data, and no further
    than to where it begins to repeat instructions.

    :param guard: that of the turn.
    """

    def __init__(self, guard: AnswerGuard) -> None:
        self._guard = guard
        self._held = ""
        self._told = ""
        self._silent = False

    def add(self, piece: str) -> str:
        """What may be told now that this piece has come."""
        self._held += piece
        settled = _SETTLED.match(self._held)
        end = settled.end() if settled else len(self._held) if len(self._held) > _MOST_HELD else 0
        return self._let_go(end)

    def rest(self) -> str:
        """What may be told at the end."""
        return self._let_go(len(self._held))

    def _let_go(self, end: int) -> str:
        ready, self._held = self._held[:end], self._held[end:]
        self._told = (self._told + ready)[-_LOOKED_BACK:]
        self._silent = self._silent or self._guard.repeats_instructions(self._told)
        return "" if self._silent else self._guard.text(ready)
