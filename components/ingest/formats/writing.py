"""Text that is no Markdown written as Markdown, so that reading it gives the same text again."""

import re
from collections.abc import Iterable, Sequence

# Inline markup by the rules of CommonMark, so that most underscores need no escape.
_INLINE = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # a backslash before punctuation
    r"|`|\*(?!\s)|(?<!\s)\*"  # code, emphasis
    r"|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)"
    r"|!(?=\[)|\[|(?<=\S)\](?=[\[(:])"  # pictures, links and their definitions
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)"  # tags, entities
)
_SPACES = re.compile(r"\s+")
_ITEM = re.compile(r"([ ]*(?:[-*]|\d{1,9}[.)])[ ]+)(?=\S)")
_LEADING = re.compile(r"#{1,6}(?=\s|$)|[>|]|(?:=+|-{2,}|_{3,})\s*$|~{3,}|[_-](?:\s+[_-])+\s*$|[+*-](?=\s|$)")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")


def inline(text: str) -> str:
    """Return `text` as one line of prose, white space runs as one space, everything that would be markup escaped."""
    return fragment(" ".join(text.split()))


def fragment(text: str) -> str:
    """Return a part of a line, white space runs as one space, also at its ends."""
    return _INLINE.sub(r"\\\g<0>", _SPACES.sub(" ", text))


def prose(text: str) -> str:
    """Escape a paragraph or list item, so that no line opens a heading, quotation, table or rule."""
    return opening(inline(text))


def opening(line: str) -> str:
    """Return a line of Markdown that starts a block, made to start a paragraph or a list item."""
    item = _ITEM.match(line)
    marker = item[1] if item else ""
    text = line[len(marker) :]
    return marker + _NUMBERED.sub(r"\1\\\2", f"\\{text}" if _LEADING.match(text) else text, count=1)


def lines(text: str) -> str:
    """Several lines, each on its own, lists kept as lists; blank lines part paragraphs."""
    return "\n".join(prose(line) for line in text.strip().split("\n"))


def heading(text: str, level: int) -> str:
    """Return a heading of level 1–6; empty for an empty text."""
    return titled(inline(text), level)


def titled(line: str, level: int) -> str:
    """Return the same of a line that is Markdown already."""
    return f"{'#' * min(max(level, 1), 6)} {line.rstrip('# ') or line}" if line else ""


def indented(block: str, pad: str, marker: str = "") -> str:
    """Indent a block inside a list item; the item's marker, if any, precedes its first line."""
    first, *following = block.split("\n")
    return "\n".join([(marker or pad) + first, *(pad + line if line else "" for line in following)])


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its first row the header; rows are filled up to the widest one. Cells hold Markdown already.

    :returns: empty when no cell holds anything.
    """
    if not any(cell.strip() for row in rows for cell in row):
        return ""
    width = max(map(len, rows))
    lines = [_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def page_mark(number: int) -> str:
    """Return a comment marking the page of the text that follows. Other Markdown readers ignore it."""
    return f"<!-- page {number} -->"


def document(blocks: Iterable[str]) -> str:
    """Blocks parted by blank lines; list items that follow each other stay one list."""
    text = ""
    after_item = False
    for block in blocks:
        if not block.strip():
            continue
        is_item = bool(_ITEM.match(block))
        text += ("" if not text else "\n" if is_item and after_item else "\n\n") + block
        after_item = is_item
    return text
