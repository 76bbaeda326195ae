"""How lists, headings and code are marked in Markdown-like text: patterns for what a line starts with."""

ORDINAL = r"\d{1,3}[.)]"
"""The number of a list item."""

ITEM = rf"(?:[-*+•–—]|{ORDINAL})"
"""What stands before a list item."""

HEADING = r"#{1,6}"
FENCE = r"(?:```|~~~)"
