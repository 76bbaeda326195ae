"""Stored data of a document besides its chunks: its record and its version."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from components.ingest.document import Revision, SourceDocument
from components.ingest.properties import described, properties
from tenants.core.json import Json
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.versions import DocumentVersion

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
        given=properties(source_meta),
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
