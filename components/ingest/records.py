"""Stored data of a document besides its chunks: its record, what an operator may override in it, its versions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from components.ingest.document import Revision, SourceDocument
from components.ingest.metadata import checked_metadata
from components.language.normalise import clean
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.versions import DocumentVersion

PROPERTIES = ("title", "status", "trust", "priority", "tags", "project_key", "evidence_tier", "source_type")
"""Properties stored with the record and with every chunk. Only the title is part of a chunk's search data."""

_DESCRIBED = (*PROPERTIES, "doc_id", "source", "url", "lang", "updated_at")

_MAY_BE_EMPTY = frozenset({"project_key", "evidence_tier", "source_type"})
_MAX_TITLE_LENGTH = 500


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


_SHARED = ("doc_id", "title", "text", "source", "url", "lang", "meta", "markup")
"""Fields of a document that its versions keep."""


def document_record(
    revision: Revision, version: int, source_meta: Mapping[str, Json], overrides: Mapping[str, Json]
) -> DocumentRecord:
    """Return the record of a document whose chunks are stored.

    :param version: the number of the version that the chunks were made from.
    :param source_meta: a chunk's metadata from the source, before an operator's overrides.
    :param overrides: the operator's overrides.
    """
    meta = revision.chunks[0].meta
    return DocumentRecord(
        **described(meta),
        content_hash=revision.content_hash,
        chunk_ids=tuple(chunk.chunk_id for chunk in revision.chunks),
        flags=tuple(sorted({str(flag) for chunk in revision.chunks for flag in _listed(chunk.meta.get("flags"))})),
        version=version,
        given={name: source_meta[name] for name in PROPERTIES},
        overrides=overrides,
    )


def _listed(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def document_version(document: SourceDocument, title: str, number: int) -> DocumentVersion:
    """Return a document as one of its versions.

    :param title: what it is called where it names no title itself.
    """
    shared = {name: getattr(document, name) for name in _SHARED} | {"title": title, "meta": dict(document.meta)}
    # In the order of stored hashes.
    content = [shared[name] for name in ("title", "text", "source", "url", "lang", "markup", "meta")]
    digest = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return DocumentVersion(version=number, content_hash=digest, **shared)


def source_document(version: DocumentVersion) -> SourceDocument:
    """Return the document that was stored as a version."""
    return SourceDocument(**{name: getattr(version, name) for name in _SHARED})
