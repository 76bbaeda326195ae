"""Headings as a path."""

HEADING_SEPARATOR = " › "
"""Separator in the heading path of a passage, outermost heading first."""


def innermost(heading: str) -> str:
    """Return the last heading of a path."""
    return heading.rpartition(HEADING_SEPARATOR)[2]


def heading_line(heading: str, depth: int = 0) -> str:
    """Return a heading as the line that marks a section inside of a passage; a subsection has `depth` 1 and more."""
    return f"{'#' * min(3 + depth, 6)} {heading}"


def section_path(heading: str, section: str) -> str:
    """Return the heading path of a section in a passage with this heading. Sections joined later name their path."""
    if not section or innermost(heading) == section:
        return heading
    if not heading or section.startswith(heading):
        return section
    return f"{heading}{HEADING_SEPARATOR}{section}"
