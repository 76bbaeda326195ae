"""Stored data of a document besides its chunks: its record and its version."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import get_args

from components.ingest.document import Revision, SourceDocument
from components.ingest.formats.parsed import Markup
from components.ingest.properties import properties
from tenants.core.json import Json
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.versions import DocumentVersion

_MARKUPS: dict[str, Markup] = {name: name for name in get_args(Markup)}


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
        doc_id=revision.document.doc_id,
        title=str(meta["title"]),
        source=revision.document.source,
        content_hash=revision.content_hash,
        chunk_ids=tuple(chunk.chunk_id for chunk in revision.chunks),
        updated_at=str(meta["updated_at"]),
        status=str(meta["status"]),
        url=revision.document.url,
        lang=str(meta["lang"]),
        trust=str(meta["trust"]),
        priority=int(str(meta["priority"])),
        tags=_words(meta["tags"]),
        project_key=str(meta["project_key"]),
        evidence_tier=str(meta["evidence_tier"]),
        source_type=str(meta["source_type"]),
        flags=tuple(sorted({flag for chunk in revision.chunks for flag in _words(chunk.meta.get("flags"))})),
        version=version,
        given=properties(source_meta),
        overrides=overrides,
    )


def _words(value: Json) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else ()


def document_version(document: SourceDocument, title: str, number: int) -> DocumentVersion:
    """Return a document as one of its versions.

    :param title: what it is called where it names no title itself.
    """
    meta = dict(document.meta)
    content = [title, document.text, document.source, document.url, document.lang, document.markup, meta]
    return DocumentVersion(
        doc_id=document.doc_id,
        version=number,
        title=title,
        text=document.text,
        source=document.source,
        url=document.url,
        lang=document.lang,
        markup=document.markup,
        content_hash=sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
        meta=meta,
    )


def source_document(version: DocumentVersion) -> SourceDocument:
    """Return the document that was stored as a version."""
    return SourceDocument(
        doc_id=version.doc_id,
        title=version.title,
        text=version.text,
        source=version.source,
        url=version.url,
        lang=version.lang,
        meta=version.meta,
        markup=_MARKUPS[version.markup],
    )
