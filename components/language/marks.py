"""Patterns for list, heading and code markers at the start of a line in Markdown-like text."""

ORDINAL = r"\d{1,3}[.)]"
"""The number of a list item."""

ITEM = rf"(?:[-*+•–—]|{ORDINAL})"
"""The marker of a list item."""

HEADING = r"#{1,6}"
FENCE = r"(?:```|~~~)"
