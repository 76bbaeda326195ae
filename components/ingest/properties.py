"""The properties of a document that an operator may override."""

from collections.abc import Mapping
from dataclasses import replace

from components.ingest.metadata import checked_metadata
from components.language.normalise import clean
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.documents import DocumentRecord

PROPERTIES = ("title", "status", "trust", "priority", "tags", "project_key", "evidence_tier", "source_type")
"""Each is kept with the record and with every chunk. Only the title is part of what a chunk is found by."""

_MAY_BE_EMPTY = frozenset({"project_key", "evidence_tier", "source_type"})
_MAX_TITLE_LENGTH = 500


def properties(meta: Mapping[str, Json]) -> dict[str, Json]:
    """The properties among a chunk's metadata."""
    return {name: meta[name] for name in PROPERTIES}


def description(record: DocumentRecord) -> dict[str, Json]:
    """What a record and each of its document's chunks both say, as the chunks should have it."""
    return {
        "doc_id": record.doc_id,
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "lang": record.lang,
        "updated_at": record.updated_at,
        "status": record.status,
        "trust": record.trust,
        "priority": record.priority,
        "tags": list(record.tags),
        "project_key": record.project_key,
        "evidence_tier": record.evidence_tier,
        "source_type": record.source_type,
    }


def in_force(record: DocumentRecord, overrides: Mapping[str, Json]) -> DocumentRecord:
    """The record under these overrides."""
    values = {**record.given, **overrides}
    tags = values["tags"]
    return replace(
        record,
        title=str(values["title"]),
        status=str(values["status"]),
        trust=str(values["trust"]),
        priority=int(str(values["priority"])),
        tags=tuple(map(str, tags)) if isinstance(tags, list | tuple) else (),
        project_key=str(values["project_key"]),
        evidence_tier=str(values["evidence_tier"]),
        source_type=str(values["source_type"]),
        overrides=overrides,
    )


def changed(overrides: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """`overrides` after an operator's changes: None removes an override, so that the source's value applies again.

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
