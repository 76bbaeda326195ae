"""Detects changed documents before any of them is opened."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from haystack import component

from components.ingest.document import Refusal, SourceDocument
from components.ingest.files import RawArticle
from components.turn import Frozen
from tenants.core.errors import Invalid
from tenants.knowledge import documents as stored_documents


class SeenDocuments:
    """All documents that a run has met, each with its file. All batches share one object: a deep copy returns it."""

    def __init__(self) -> None:
        self.doc_ids: dict[str, str] = {}

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def is_new(self, doc_id: str, file: str) -> bool:
        """Record an id and its file. False when it was already there."""
        count = len(self.doc_ids)
        self.doc_ids.setdefault(doc_id, file)
        return len(self.doc_ids) > count


@dataclass(frozen=True, slots=True)
class Changed(Frozen):
    """A new or changed article.

    :param content_hash: covers all that was given and the recipe it is processed by.
    """

    article: RawArticle | SourceDocument
    content_hash: str


@component
class ChangeDetector:
    """Pass on the articles that are new to the tenant in context or differ from its records.

    Files are compared by their bytes, so an unchanged one is not parsed again.
    """

    @component.output_types(changed=list[Changed], unchanged=int, refusals=list[Refusal])
    def run(
        self, articles: list[RawArticle | SourceDocument], recipe: str, seen: SeenDocuments
    ) -> dict[str, list[Changed] | list[Refusal] | int]:
        """Compare each article with the records. A second article with the same id is refused: `doc_id_duplicate`.

        :param recipe: identifies how documents are processed; with another recipe, every document counts as changed.
        :param seen: the documents that the run has already met; unchanged ones are added to it.
        """
        hashes = [content_hash(article, recipe) for article in articles]
        doc_ids_by_hash = stored_documents.doc_ids_by_content_hash(hashes)
        changed: list[Changed] = []
        refusals: list[Refusal] = []
        unchanged = 0
        for article, digest in zip(articles, hashes, strict=True):
            doc_id = doc_ids_by_hash.get(digest)
            if doc_id is None:
                changed.append(Changed(article, digest))
            elif seen.is_new(doc_id, article.source):
                unchanged += 1
            else:
                refusals.append(duplicate_error(article, doc_id))
        return {"changed": changed, "unchanged": unchanged, "refusals": refusals}


def duplicate_error(article: RawArticle | SourceDocument, doc_id: str) -> Refusal:
    """Return the refusal of a second document with the same id."""
    return Refusal(Invalid("doc_id_duplicate", doc_id=doc_id), article.source, article.line, doc_id)


def content_hash(article: RawArticle | SourceDocument, recipe: str) -> str:
    """Return the SHA-256 of all input to a document's chunks. The document's position in its file is not part of it."""
    # The fallback for a missing title depends on whether the document is alone in its file.
    hashed = [recipe, article.source, article.line > 0]
    if isinstance(article, RawArticle):
        return sha256(json.dumps([*hashed, article.format]).encode() + b"\n" + article.data).hexdigest()
    hashed += [article.doc_id, article.title, article.text, article.url, article.lang, article.markup]
    return sha256(json.dumps([*hashed, dict(article.meta)], sort_keys=True, ensure_ascii=False).encode()).hexdigest()
