"""Telling changed documents from those that cost nothing."""

import json
from hashlib import sha256
from typing import Self

from haystack import component

from components.ingest.document import Refusal, Revision, SourceDocument
from tenants import documents as stored_documents
from tenants.errors import Invalid


class Seen:
    """The ids of all documents that a run has met. One object for all of its batches, so copying it is sharing it."""

    def __init__(self) -> None:
        self.doc_ids: set[str] = set()

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def is_new(self, doc_id: str) -> bool:
        """Note an id. False when it was there already."""
        known = len(self.doc_ids)
        self.doc_ids.add(doc_id)
        return len(self.doc_ids) > known


@component
class ChangeDetector:
    """Lets through the documents that are new to the tenant in context or differ from what is stored."""

    @component.output_types(revisions=list[Revision], unchanged=int, refusals=list[Refusal])
    def run(
        self, documents: list[SourceDocument], recipe: str, seen: Seen
    ) -> dict[str, list[Revision] | list[Refusal] | int]:
        """Compare each document with its record. A second document of the same id is refused: `doc_id_duplicate`.

        :param recipe: names the way documents are processed; under another one every document counts as changed.
        :param seen: what the run has met before.
        """
        known = stored_documents.find([document.doc_id for document in documents])
        revisions: list[Revision] = []
        refusals: list[Refusal] = []
        unchanged = 0
        for document in documents:
            digest = content_hash(document, recipe)
            record = known.get(document.doc_id)
            if not seen.is_new(document.doc_id):
                error = Invalid("doc_id_duplicate", doc_id=document.doc_id)
                refusals.append(Refusal(error, document.source, document.line, document.doc_id))
            elif record is not None and record.content_hash == digest:
                unchanged += 1
            else:
                revisions.append(Revision(document, digest))
        return {"revisions": revisions, "unchanged": unchanged, "refusals": refusals}


def content_hash(document: SourceDocument, recipe: str) -> str:
    """SHA-256 of all that a document's chunks are made from. Where it stands in its file is not part of it."""
    given = [
        recipe,
        document.doc_id,
        document.title,
        document.text,
        document.source,
        document.url,
        document.lang,
        document.markup,
        # Whether a document came alone decides what stands in for a missing title.
        document.line > 0,
        dict(document.meta),
    ]
    return sha256(json.dumps(given, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
