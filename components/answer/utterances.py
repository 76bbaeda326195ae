"""Streaming parser that splits a model's output into utterances: the text that one group of marks [N] supports.

A line without a mark is an utterance too: small models copy steps verbatim and leave out the marks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from components.language.marks import FENCE, ITEM
from components.language.sentences import sentence_spans

_MARK = r"\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\]"
_MARKS = re.compile(rf"\s*{_MARK}")
_NUMBER = re.compile(r"\d+")
# Marks end a sentence if a full stop precedes or follows them, or a capital follows. A line break ends one too.
_END = re.compile(
    rf"(?:[.!?…][»\"”)*_]*(?:\s*{_MARK})+|(?:\s*{_MARK})+[.!?…;]+|(?:\s*{_MARK})+(?=\s+[A-ZА-ЯЁ]))(?=\s+[^\s\[])"
    r"|(?<!\s)[^\S\n]*+\n\s*+(?=[^\s\[])"
)
_FENCED = re.compile(rf"\s*({FENCE}).*?\n\s*\1[^\n]*(?:\s*{_MARK})*\s*(?=[^\s\[])", re.DOTALL)
_OPEN_FENCE = re.compile(rf"\s*{FENCE}")
_ITEM = re.compile(rf"\s*({ITEM})\s+")


@dataclass(frozen=True, slots=True)
class Utterance:
    """Sentences under one group of marks.

    `marks` lists the numbers in order and is empty if the model wrote none. `bullet` is the marker of a list item,
    empty outside of lists. `own_line` is true if the sentences begin a line.
    """

    sentences: tuple[str, ...]
    marks: tuple[int, ...]
    bullet: str = ""
    own_line: bool = False


class Utterances:
    """Cuts a text that comes in pieces. What has not ended yet waits for more."""

    def __init__(self) -> None:
        self._waiting = ""
        self._lead: tuple[str, ...] = ()
        self._own_line = False

    def add(self, piece: str) -> Iterator[Utterance]:
        """Yield the utterances that this piece ends."""
        self._waiting += piece
        while (end := self._end()) is not None:
            raw, self._waiting = self._waiting[:end], self._waiting[end:]
            yield from self._read(raw)

    def finish(self) -> Iterator[Utterance]:
        """Yield the remaining text at the end of the stream."""
        raw, self._waiting = self._waiting, ""
        yield from self._read(raw)

    def _end(self) -> int | None:
        if "[" not in self._waiting and "\n" not in self._waiting:
            return None
        if _OPEN_FENCE.match(self._waiting):
            match = _FENCED.match(self._waiting)
        else:
            match = _END.search(self._waiting, len(self._waiting) - len(self._waiting.lstrip()))
        return match.end() if match else None

    def _read(self, raw: str) -> Iterator[Utterance]:
        own_line = self._own_line or "\n" in raw[: len(raw) - len(raw.lstrip())]
        self._own_line = "\n" in raw[len(raw.rstrip()) :]
        marks = tuple(dict.fromkeys(int(n) for group in _MARKS.findall(raw) for n in _NUMBER.findall(group)))
        text = re.sub(r"[^\S\n]+(?=[.,;:!?…])", "", _MARKS.sub("", raw)).strip()
        if not text:
            return
        if not marks and text.endswith(":"):
            # The lead-in of a list shares the citations of the list.
            self._lead = (text,)
            self._own_line |= own_line
            return
        if self._lead:
            yield Utterance(self._lead, marks, own_line=own_line)
            own_line, self._lead = True, ()
        bullet, sentences = _parsed(text)
        yield Utterance(sentences, marks, bullet, own_line or bool(bullet))


def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the bullet of a list's item, and the sentences behind it; code stays in one piece."""
    if _OPEN_FENCE.match(text):
        return "", (text,)
    match = _ITEM.match(text)
    body = text[match.end() :] if match else text
    spans = sentence_spans(body)
    return (match[1] if match else ""), tuple(" ".join(body[start:end].split()) for start, end in spans)
