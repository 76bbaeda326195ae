"""Streams a text while it is written: not yet checked against the evidence, but against the answer rules."""

import re

from components.decide.answer_guard import AnswerGuard

# Links, telephone numbers and Markdown end before a plain word; up to there a text can be judged.
_SETTLED = re.compile(r"(?:.*\s)?[^\W\d]+[,.!?;:]?\s+", re.DOTALL)
_MAX_BUFFERED = 400
_LOOKBACK = 200


class ProvisionalText:
    """Passes a text on as it comes, some words late: without foreign links and strangers' personal data, and no further
    than to where it begins to repeat instructions.

    :param guard: that of the turn.
    """

    def __init__(self, guard: AnswerGuard) -> None:
        self._guard = guard
        self._buffer = ""
        self._emitted = ""
        self._silent = False

    def add(self, piece: str) -> str:
        """The text that may be emitted after this piece."""
        self._buffer += piece
        settled = _SETTLED.match(self._buffer)
        end = settled.end() if settled else len(self._buffer) if len(self._buffer) > _MAX_BUFFERED else 0
        return self._release(end)

    def flush(self) -> str:
        """The text that may be emitted at the end."""
        return self._release(len(self._buffer))

    def _release(self, end: int) -> str:
        ready, self._buffer = self._buffer[:end], self._buffer[end:]
        self._emitted = (self._emitted + ready)[-_LOOKBACK:]
        self._silent = self._silent or self._guard.repeats_instructions(self._emitted)
        return "" if self._silent else self._guard.text(ready)
