"""Sentence boundaries in plain and Markdown-like text."""

import re

from razdel import sentenize

from components.language.marks import FENCE, HEADING, ITEM

# Lines that are separate units: list items, headings, table rows, quotes.
_OWN_LINE = re.compile(rf"\s*(?:{ITEM}\s|{HEADING}\s|\||>)")
_FENCE = re.compile(rf"\s*{FENCE}")


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) offsets of the sentences of `text` in order, without surrounding white space.

    A list item, heading, table row or fenced code block is one unit; elsewhere lines that follow each other are one
    paragraph, split by the rules of razdel. The spans never overlap and leave out nothing but white space.
    """
    spans: list[tuple[int, int]] = []
    for start, end, prose in _blocks(text):
        if prose:
            spans.extend((start + part.start, start + part.stop) for part in sentenize(text[start:end]))
        else:
            spans.append((start, end))
    return tuple(span for raw in spans if (span := _trimmed(text, *raw)))


def _blocks(text: str) -> list[tuple[int, int, bool]]:
    blocks: list[tuple[int, int, bool]] = []
    paragraph: int | None = None
    fence: int | None = None
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if fence is not None:
            if _FENCE.match(line):
                blocks.append((fence, position, False))
                fence = None
            continue
        starts_fence = bool(_FENCE.match(line))
        if paragraph is not None and (starts_fence or not line.strip() or _OWN_LINE.match(line)):
            blocks.append((paragraph, start, True))
            paragraph = None
        if starts_fence:
            fence = start
        elif _OWN_LINE.match(line):
            blocks.append((start, position, False))
        elif line.strip() and paragraph is None:
            paragraph = start
    if fence is not None:
        blocks.append((fence, position, False))
    if paragraph is not None:
        blocks.append((paragraph, position, True))
    return blocks


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
