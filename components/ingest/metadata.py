"""The metadata of a document, validated before anything is stored."""

import json
from collections.abc import Mapping
from datetime import date
from math import isfinite
from typing import get_args

from components.turn import DocumentStatus, Trust
from tenants.core.errors import Invalid
from tenants.core.json import Json

MAX_ID_LENGTH = 500
"""Characters of a `doc_id`: what the records' key column holds."""
PRIORITIES = range(101)
_CLOSED = {"trust": get_args(Trust), "status": get_args(DocumentStatus)}
_WORDS = ("project_key", "source_type", "evidence_tier")
_MAX_WORD_LENGTH = 200
_MAX_VALUE_LENGTH = 1_000
_MAX_TAGS = 50
MAX_METADATA_BYTES = 64_000
"""Limit of a document's metadata, which is stored with its record and read with every list of documents."""


def checked_metadata(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return `meta` with known keys in their stored form and unknown keys unchanged.

    Raises `Invalid` with the code `metadata_invalid` and the field, or `metadata_too_large`.
    """
    if len(json.dumps(meta, ensure_ascii=False, default=str).encode("utf-8", "replace")) > MAX_METADATA_BYTES:
        raise Invalid("metadata_too_large", limit=MAX_METADATA_BYTES)
    checked: dict[str, Json] = {name: value for name, value in meta.items() if value is not None}
    for name, value in checked.items():
        if not _is_finite(value):
            # Not valid JSON: a database or an index would refuse the whole batch.
            raise Invalid("metadata_invalid", field=name)
    for name, accepted in _CLOSED.items():
        if name in checked and checked[name] not in accepted:
            raise Invalid("metadata_invalid", field=name)
    for name in _WORDS:
        if name in checked:
            checked[name] = _word(name, checked[name])
    if "priority" in checked:
        checked["priority"] = _priority(checked["priority"])
    for name in ("tags", "flags"):
        if name in checked:
            checked[name] = _labels(name, checked[name])
    if "updated_at" in checked:
        checked["updated_at"] = day("updated_at", checked["updated_at"])
    return checked


def storable(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return the part of `meta` that every chunk of the document carries: single values and flat lists of modest size.

    A nested value, such as a table of contents or what a document declares of others, would be repeated with each chunk
    and cannot be filtered by.
    """
    return {name: value for name, value in meta.items() if _flat(value) and _size(value) <= _MAX_VALUE_LENGTH}


def _is_finite(value: Json) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))


def _flat(value: Json) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str | int | float | bool) for item in value)
    return not isinstance(value, Mapping)


def _size(value: Json) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _word(name: str, value: Json) -> str:
    # A number is a fair way to write a project key, and filters compare text.
    word = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(word, str) or not 0 < len(word) <= _MAX_WORD_LENGTH:
        raise Invalid("metadata_invalid", field=name)
    return word


def _priority(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        raise Invalid("metadata_invalid", field="priority")
    return value


def _labels(name: str, value: Json) -> list[Json]:
    labels = [value] if isinstance(value, str) else value
    if not isinstance(labels, list | tuple) or len(labels) > _MAX_TAGS:
        raise Invalid("metadata_invalid", field=name)
    return list(dict.fromkeys(_word(name, label) for label in labels))


def day(name: str, value: Json) -> str:
    """Return the ISO 8601 day of a date or a moment, kept in the time zone that it was given in."""
    try:
        return date.fromisoformat(str(value).strip()[:10]).isoformat()
    except ValueError as malformed:
        raise Invalid("metadata_invalid", field=name) from malformed
