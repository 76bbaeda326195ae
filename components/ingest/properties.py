"""The properties of a document that an operator may override."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.ingest.metadata import checked_metadata
from components.language.normalise import clean
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.documents import DocumentRecord

PROPERTIES = ("title", "status", "trust", "priority", "tags", "project_key", "evidence_tier", "source_type")
"""Properties stored with the record and with every chunk. Only the title is part of a chunk's search data."""

_DESCRIBED = (*PROPERTIES, "doc_id", "source", "url", "lang", "updated_at")

_MAY_BE_EMPTY = frozenset({"project_key", "evidence_tier", "source_type"})
_MAX_TITLE_LENGTH = 500


def properties(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return the properties among a chunk's metadata."""
    return {name: meta[name] for name in PROPERTIES}


def described(meta: Mapping[str, Json]) -> dict[str, Any]:
    """Return the fields that a record shares with its document's chunks, in the form of the record."""
    fields: dict[str, Any] = {name: meta[name] for name in _DESCRIBED}
    return fields | {"tags": tuple(fields["tags"])}


def description(record: DocumentRecord) -> dict[str, Json]:
    """Return the same in the form that the chunks store."""
    return {name: getattr(record, name) for name in _DESCRIBED} | {"tags": list(record.tags)}


def in_force(record: DocumentRecord, overrides: Mapping[str, Json]) -> DocumentRecord:
    """Return the record under these overrides."""
    return replace(record, **described({**description(record), **record.given, **overrides}), overrides=overrides)


def changed(overrides: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """Apply an operator's changes to `overrides`: None removes an override and restores the source's value.

    Raises `Invalid`: `property_unknown`, `metadata_invalid`, each with the field.
    """
    for name in changes:
        if name not in PROPERTIES:
            raise Invalid("property_unknown", field=name)
    return {
        **{name: value for name, value in overrides.items() if name not in changes},
        **{name: _checked(name, value) for name, value in changes.items() if value is not None},
    }


def _checked(name: str, value: Json) -> Json:
    if name == "title":
        return _title(value)
    # To say "none" differs from saying nothing.
    if name in _MAY_BE_EMPTY and value == "":
        return value
    return checked_metadata({name: value})[name]


def _title(value: Json) -> str:
    title = clean(value).strip() if isinstance(value, str) else ""
    if not 0 < len(title) <= _MAX_TITLE_LENGTH or not title.isprintable():
        raise Invalid("metadata_invalid", field="title")
    return title
