"""Parser that splits a model's output into utterances: the text that one group of marks [N] supports.

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


def utterances(text: str) -> Iterator[Utterance]:
    """Yield the utterances of a text in order."""
    lead = ""
    begins_line = False
    while text:
        end = _end(text)
        raw, text = text[:end], text[end:]
        own_line = begins_line or "\n" in raw[: len(raw) - len(raw.lstrip())]
        begins_line = "\n" in raw[len(raw.rstrip()) :]
        marks = tuple(dict.fromkeys(int(n) for group in _MARKS.findall(raw) for n in _NUMBER.findall(group)))
        said = re.sub(r"[^\S\n]+(?=[.,;:!?…])", "", _MARKS.sub("", raw)).strip()
        if not said:
            continue
        if not marks and said.endswith(":"):
            # The lead-in of a list shares the citations of the list.
            lead = said
            begins_line |= own_line
            continue
        if lead:
            yield Utterance((lead,), marks, own_line=own_line)
            own_line, lead = True, ""
        bullet, sentences = _parsed(said)
        yield Utterance(sentences, marks, bullet, own_line or bool(bullet))


def _end(text: str) -> int:
    """Return the end of the first utterance."""
    begin = len(text) - len(text.lstrip())
    match = _FENCED.match(text) if _OPEN_FENCE.match(text) else _END.search(text, begin)
    return match.end() if match else len(text)


def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the bullet of a list's item, and the sentences behind it; code stays in one piece."""
    if _OPEN_FENCE.match(text):
        return "", (text,)
    match = _ITEM.match(text)
    body = text[match.end() :] if match else text
    spans = sentence_spans(body)
    return (match[1] if match else ""), tuple(" ".join(body[start:end].split()) for start, end in spans)
