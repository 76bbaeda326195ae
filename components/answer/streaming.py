"""A draft told while a model writes it, sentence by sentence, before its claims are verified."""

import re
from collections.abc import Callable
from contextlib import suppress

from pydantic import ValidationError

from components.answer.token_sink import emit
from components.turn import Draft

_SENTENCE = re.compile(r'\{\s*"text"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"cites"\s*:\s*\[[^\]]*\]\s*\}')


class DraftStream:
    """Reads a reply in JSON as it arrives and emits each complete sentence as provisional text.

    :param draft_of: makes the draft of the sentences so far, each a JSON object, as it may be shown.
    """

    def __init__(self, draft_of: Callable[[list[str]], Draft]) -> None:
        self._draft_of = draft_of
        self._reply = ""
        self._count = 0
        self._emitted = ""

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self._reply += piece
        sentences = _SENTENCE.findall(self._reply) if "}" in piece else []
        if len(sentences) <= self._count:
            return
        self._count = len(sentences)
        with suppress(ValidationError):
            text = self._draft_of(sentences).text
            if text.startswith(self._emitted):
                emit(text[len(self._emitted) :], provisional=True)
                self._emitted = text
