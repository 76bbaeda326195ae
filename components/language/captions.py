"""Headings as a path, and captions that announce a solution."""

import re

HEADING_SEPARATOR = " › "
"""Separator in the heading path of a passage, outermost heading first."""

_RESOLUTION = re.compile(
    r"(?:ответ|решение(?: проблемы)?|(?:способ\w* )?(?:устранени|исправлени|решени)\w*|что делать|как исправить|"
    r"answers?|(?:re)?solution|resolving the problem|how to (?:fix|resolve)(?: it| this)?|fix|"
    r"workarounds?(?: and mitigations)?|remediations?(?: ?/ ?fix(?:es)?)?|"
    r"what to do)\W*",
    re.IGNORECASE,
)


def innermost(heading: str) -> str:
    """Return the last heading of a path."""
    return heading.rpartition(HEADING_SEPARATOR)[2]


def is_resolution(caption: str) -> bool:
    """Return whether a caption announces the solution or answer to the problem or question before it."""
    return bool(_RESOLUTION.fullmatch(caption.strip().lstrip("# ")))
