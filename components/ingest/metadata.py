"""The metadata of a document, validated before anything is stored.

A document may also declare its ties to other documents, and approaches that it rejects. In front matter, or as keys of
a JSON Lines article:

    supersedes: returns-2023.md
    depends_on: [warranty.md, {doc_id: delivery.md, weight: 0.5}]
    rejected:
      - Refund in cash
      - {text: Refund to another card, reason: The bank forbids it, date: 2024-03-01}
"""

import json
from collections.abc import Mapping
from datetime import date
from itertools import accumulate
from math import isfinite
from typing import Annotated, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StringConstraints,
    ValidationError,
)

from components.ingest.document import SourceDocument
from components.turn import DocumentStatus, EdgeKind, Trust
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.rejected import MAX_REASON_LENGTH, MAX_TEXT_LENGTH, Rejected

MAX_ID_LENGTH = 500
"""Characters of a `doc_id`: what the records' key column holds."""
MAX_METADATA_BYTES = 64_000
"""Limit of a document's metadata, which is stored with its record and read with every list of documents."""
_MAX_VALUE_LENGTH, _MAX_STORED_LENGTH = 1_000, 4_000
"""Characters of a value, and of all values, that each chunk of a document carries."""
_MAX_DECLARED = 100
_MOST_KEYWORDS, _KEYWORD_LENGTH = 50, 200
_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)


def _as_text(value: object) -> object:
    # A number is a fair way to write a project key, and filters compare text.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _day(value: object) -> str:
    """Return the ISO 8601 day of a date or a moment, kept in the time zone that it was given in."""
    return date.fromisoformat(str(value).strip()[:10]).isoformat()


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


def _distinct(labels: list[str]) -> list[str]:
    return list(dict.fromkeys(labels))


def _keywords(value: object) -> list[str]:
    """Return keywords given as a list or as text with commas. What is no word is left out."""
    listed = value if isinstance(value, list | tuple) else str(value or "").split(",")
    words = (str(one).strip()[:_KEYWORD_LENGTH] for one in listed if isinstance(one, str | int))
    return list(dict.fromkeys(filter(None, words)))[:_MOST_KEYWORDS]


_Word = Annotated[str, BeforeValidator(_as_text), StringConstraints(strict=True, min_length=1, max_length=200)]
_Labels = Annotated[list[_Word], BeforeValidator(_listed), Field(max_length=50), AfterValidator(_distinct)]
_Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_ID_LENGTH), AfterValidator(_printable)]


class _Item(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _DeclaredEdge(_Item):
    doc_id: _Id
    weight: Annotated[StrictFloat, Field(ge=0, le=1)] = 1.0


class _DeclaredRejection(_Item):
    text: Annotated[
        str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=MAX_TEXT_LENGTH)
    ]
    reason: Annotated[
        str,
        BeforeValidator(lambda value: value or ""),
        StringConstraints(strict=True, strip_whitespace=True, max_length=MAX_REASON_LENGTH),
    ] = ""
    date: Annotated[str, BeforeValidator(lambda value: _day(value) if value else "")] = ""


def _mapping(name: str) -> BeforeValidator:
    """Return what takes an item that is no mapping for the value of its main key."""
    return BeforeValidator(lambda item: item if isinstance(item, Mapping) else {name: item})


_Edges = Annotated[
    list[Annotated[_DeclaredEdge, _mapping("doc_id")]], BeforeValidator(_listed), Field(max_length=_MAX_DECLARED)
]
_Rejections = Annotated[
    list[Annotated[_DeclaredRejection, _mapping("text")]], BeforeValidator(_listed), Field(max_length=_MAX_DECLARED)
]


class _Known(BaseModel):
    """Keys with a meaning of their own, in their stored form; None if omitted."""

    trust: Trust | None = None
    status: DocumentStatus | None = None
    project_key: _Word | None = None
    source_type: _Word | None = None
    evidence_tier: _Word | None = None
    priority: Annotated[StrictInt, Field(ge=0, le=100)] | None = None
    tags: _Labels | None = None
    keywords: Annotated[list[str], BeforeValidator(_keywords)] | None = None
    flags: _Labels | None = None
    updated_at: Annotated[str, BeforeValidator(_day)] | None = None
    depends_on: _Edges | None = None
    implements: _Edges | None = None
    decision_for: _Edges | None = None
    related_to: _Edges | None = None
    supersedes: _Edges | None = None
    rejected: _Rejections | None = None


def checked_metadata(meta: Mapping[str, Json], doc_id: str = "") -> dict[str, Json]:
    """Return `meta` with known keys in their stored form and unknown keys unchanged.

    Raises `Invalid` with the code `metadata_invalid` and the field, or `metadata_too_large`.

    :param doc_id: the document, which cannot be tied to itself.
    """
    if len(json.dumps(meta, ensure_ascii=False, default=str).encode("utf-8", "replace")) > MAX_METADATA_BYTES:
        raise Invalid("metadata_too_large", limit=MAX_METADATA_BYTES)
    given = {name: value for name, value in meta.items() if value is not None}
    for name, value in given.items():
        if not _is_finite(value):
            # Not valid JSON: a database or an index would refuse the whole batch.
            raise Invalid("metadata_invalid", field=name)
    known = _known(given)
    for kind in _KINDS:
        if any(edge.doc_id == doc_id for edge in getattr(known, kind) or ()):
            raise Invalid("metadata_invalid", field=kind)
    return {**given, **known.model_dump(include=set(given))}


def _known(meta: Mapping[str, Json]) -> _Known:
    try:
        return _Known.model_validate({name: meta[name] for name in _Known.model_fields if name in meta})
    except ValidationError as invalid:
        raise Invalid("metadata_invalid", field=str(invalid.errors()[0]["loc"][0])) from invalid


def declared_edges(document: SourceDocument) -> list[Edge]:
    """Return the edges that a checked document declares."""
    known = _known(document.meta)
    return [
        Edge(document.doc_id, kind, edge.doc_id, edge.weight, declared=True)
        for kind in _KINDS
        for edge in getattr(known, kind) or ()
    ]


def declared_rejected(document: SourceDocument) -> list[Rejected]:
    """Return the rejected approaches that a checked document declares. Without its own day, an approach has that of its
    document.
    """
    known = _known(document.meta)
    return [
        Rejected(one.text, one.reason, one.date or known.updated_at or "", document.doc_id, declared=True)
        for one in known.rejected or ()
    ]


def storable(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return the part of `meta` that every chunk of the document carries: single values and flat lists of modest size.

    A nested value, such as a table of contents or what a document declares of others, would be repeated with each chunk
    and cannot be filtered by. Of many values, the shortest are kept.
    """
    flat = {name: value for name, value in meta.items() if _flat(value) and _size(value) <= _MAX_VALUE_LENGTH}
    shortest = sorted(flat, key=lambda name: len(name) + _size(flat[name]))
    sizes = accumulate(len(name) + _size(flat[name]) for name in shortest)
    kept = {name for name, size in zip(shortest, sizes, strict=True) if size <= _MAX_STORED_LENGTH}
    return {name: value for name, value in flat.items() if name in kept}


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
