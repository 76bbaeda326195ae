"""Headings as a path."""

HEADING_SEPARATOR = " › "
"""Separator in the heading path of a passage, outermost heading first."""


def innermost(heading: str) -> str:
    """Return the last heading of a path."""
    return heading.rpartition(HEADING_SEPARATOR)[2]


def heading_line(heading: str) -> str:
    """Return a heading as the line that marks a section inside of a passage."""
    return f"### {heading}"
