"""Patterns for list, heading and code markers at the start of a line in Markdown-like text."""

import re

ORDINAL = r"\d{1,3}[.)]"
"""The number of a list item."""

BULLET = r"[-*+•–—]"
ITEM = rf"(?:{BULLET}|{ORDINAL})"
"""The marker of a list item."""

HEADING = r"#{1,6}"
HEADING_MARK = re.compile(rf"{HEADING}\s+")
"""The marker of a heading, with the white space behind it."""

HEADING_LINE = re.compile(rf"^{HEADING}[ \t]++(.(?:.*[^ \t#\n])?)[ \t#]*+$", re.MULTILINE)
"""A line that is a heading; its group is the heading's text."""

FENCE = r"(?:```|~~~)"

_OPENING = rf"^[ \t]*+(?:{HEADING}[ \t]+|{BULLET}[ \t]+|{FENCE}.*$|\|[-:| \t]*$|\|)"
_LINE_MARK = re.compile(rf"{_OPENING}|[ \t]*+\|[ \t]*+$", re.MULTILINE)


def on_one_line(markdown: str) -> str:
    """Return Markdown on one line, without the marks of headings, bullets, code and table rows."""
    return " ".join(_LINE_MARK.sub("", markdown).split())
