"""Searches of the tenant's index by the stems of a text, which no other word shares as it may share n-grams."""

from zlib import crc32

from components.language.words import stems
from tenants.core.points import Conditions, Hit
from tenants.index import SPARSE, open_collection


def found_by_stems(text: str, prefix: str = "", conditions: Conditions | None = None) -> list[Hit]:
    """Return the chunks that contain a stem of the text.

    :param prefix: of the vector's part: none for all fields, `h:` for title and headings.
    """
    query = {crc32(f"{prefix}{stem}".encode()): 1.0 for stem in stems(text)}
    return open_collection().search({SPARSE: query}, limit=100, conditions=conditions)[SPARSE]


def found_by_headings(text: str) -> list[Hit]:
    """Return the chunks whose title or headings contain a stem of the text."""
    return found_by_stems(text, "h:")
