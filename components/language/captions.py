"""Headings as a path."""

HEADING_SEPARATOR = " › "
"""Separator in the heading path of a passage, outermost heading first."""


def innermost(heading: str) -> str:
    """Return the last heading of a path."""
    return heading.rpartition(HEADING_SEPARATOR)[2]
