"""What small models write beside an answer: a text that goes round in circles, and leftovers of Markdown."""

import re

MAX_REPLY_LENGTH = 8_000
"""Characters from which a reply is no answer any more: six sentences are asked for."""

_NUMBERED = re.compile(r"^\s*\d+[.)]\s*", re.MULTILINE)
_ROUNDS = 4
_MAX_PERIOD = 400
_MIN_LOOP = 60
_HEAD = re.compile(r"\A(?:#{1,6}\s+|>\s+)*(?:\W*(?:ответ|answer)\W*:\W*)?", re.IGNORECASE)
_MARKS = ("**", "`")
_WORD = re.compile(r"\w")


def loops(reply: str) -> bool:
    """Whether a reply has come to repeat itself, word for word but for the numbers of a list, or to have no end."""
    if len(reply) > MAX_REPLY_LENGTH:
        return True
    tail = _NUMBERED.sub("", reply[-2 * _ROUNDS * _MAX_PERIOD :])
    for length in range(1, min(_MAX_PERIOD, len(tail) // _ROUNDS) + 1):
        rounds = max(_ROUNDS, -(-_MIN_LOOP // length))
        if tail[-length:] == tail[-2 * length : -length] and tail.endswith(tail[-length:] * rounds):
            return bool(tail[-length:].strip())
    return False


def without_debris(sentence: str) -> str:
    """The sentence without a heading's signs, a label such as `Ответ:`, and emphasis that never closes."""
    said = _HEAD.sub("", sentence)
    for mark in _MARKS:
        if said.count(mark) % 2:
            said = said.removeprefix(mark).removesuffix(mark)
    return said.strip() if _WORD.search(said) else ""
