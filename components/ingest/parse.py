"""Parses raw articles into documents and validates every document before anything is stored."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from haystack import component

from components.ingest import formats
from components.ingest.changes import Changed, SeenDocuments, duplicate_error
from components.ingest.document import Refusal, Revision, SourceDocument
from components.ingest.files import RawArticle
from components.ingest.formats import HARMLESS
from components.ingest.formats.detect import format_of, is_packed
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import Parsed
from components.ingest.metadata import MAX_ID_LENGTH, checked_metadata
from components.ingest.sandbox import Sandbox
from tenants.core import fairness
from tenants.core.errors import CallerError, Invalid
from tenants.core.json import Json

_ADDRESS = re.compile(r"(?:https?://|[^:\s/?#]*+(?:[/?#]|\Z))[^\s\\]*+\Z", re.IGNORECASE)
"""Addresses that a citation may link to: a web page or a path on the same site. No other schemes (`javascript:`)."""
_MAX_URL_LENGTH = 2_000


@component
class ArticleParser:
    """Read files of every format, and articles in JSON Lines.

    A file's `doc_id` is its path unless its front matter names another. Formats that need a library are read in a
    sandbox.

    :param max_characters: the longest text of one document.
    """

    def __init__(self, max_characters: int = 5_000_000) -> None:
        self.max_characters = max_characters
        self._sandbox = Sandbox()

    @component.output_types(revisions=list[Revision], refusals=list[Refusal], pages=int)
    def run(self, changed: list[Changed], seen: SeenDocuments) -> dict[str, list[Revision] | list[Refusal] | int]:
        """Parse and validate raw articles. An unusable one is refused with its location; the others are processed.

        :param seen: the documents that the run has already met. A second document of the same id is refused:
            `doc_id_duplicate`.
        """
        revisions: list[Revision] = []
        refusals: list[Refusal] = []
        for article_change in changed:
            fairness.yield_to_questions()
            parsed = self.parse(article_change.article)
            if isinstance(parsed, Refusal):
                refusals.append(parsed)
            elif seen.is_new(parsed.doc_id, article_change.article.source):
                revisions.append(Revision(parsed, article_change.content_hash))
            else:
                refusals.append(duplicate_error(article_change.article, parsed.doc_id))
        pages = sum(revision.document.pages for revision in revisions)
        return {"revisions": revisions, "refusals": refusals, "pages": pages}

    def parse(self, article: RawArticle | SourceDocument) -> SourceDocument | Refusal:
        """Return the article as a document, or its refusal.

        Codes: `json_invalid`, `doc_id_missing`, `doc_id_invalid`, `text_missing`, `text_too_long`, `field_invalid`,
        `metadata_invalid`, and those of `components.ingest.formats.read` and of the sandbox.
        """
        doc_id = article.doc_id if isinstance(article, SourceDocument) else ""
        try:
            document = article if isinstance(article, SourceDocument) else self._read(article)
            doc_id = document.doc_id
            return self._checked(document)
        except CallerError as error:
            return Refusal(error, article.source, article.line, doc_id)

    def _read(self, article: RawArticle) -> SourceDocument:
        if article.format == "json_lines":
            return _from_keys(_json_object(decoded(article.data)), None, article)
        if not is_packed(article.data) and format_of(article.source, article.data) in HARMLESS:
            return _from_file(formats.read(article.source, article.data), article)
        return _from_file(self._sandbox.read(article.source, article.data), article)

    def _checked(self, document: SourceDocument) -> SourceDocument:
        if not document.doc_id.strip():
            raise Invalid("doc_id_missing")
        if len(document.doc_id) > MAX_ID_LENGTH or not document.doc_id.isprintable():
            raise Invalid("doc_id_invalid", limit=MAX_ID_LENGTH)
        if not document.text.strip():
            raise Invalid("text_missing")
        if len(document.text) > self.max_characters:
            raise Invalid("text_too_long", limit=self.max_characters)
        if document.url and (len(document.url) > _MAX_URL_LENGTH or not _ADDRESS.match(document.url)):
            raise Invalid("field_invalid", field="url")
        meta = checked_metadata(document.meta, document.doc_id)
        for name, value in (("title", document.title), ("text", document.text), ("metadata", json.dumps(meta))):
            _check_encodable(name, value)
        return replace(document, meta=meta)


def _check_encodable(name: str, value: str) -> None:
    """JSON can encode half of a surrogate pair, which no file and no database can store."""
    with Invalid("field_invalid", field=name).instead_of(UnicodeEncodeError):
        value.encode()


def _json_object(text: str) -> Mapping[str, Json]:
    with Invalid("json_invalid").instead_of(ValueError, RecursionError):
        parsed_json = json.loads(text, parse_constant=_no_constant)
    if not isinstance(parsed_json, dict):
        raise Invalid("json_invalid")
    return parsed_json


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _from_file(parsed: Parsed, article: RawArticle) -> SourceDocument:
    keys = {"source_type": "faq", **parsed.meta} if parsed.markup == "faq" else dict(parsed.meta)
    if parsed.title:
        keys["title"] = parsed.title
    if parsed.flags:
        keys["flags"] = parsed.flags
    return replace(_from_keys(keys, parsed.text, article), markup=parsed.markup, pages=parsed.pages)


def _from_keys(keys: Mapping[str, Json], body: str | None, article: RawArticle) -> SourceDocument:
    """Return a document from an article's keys. `body` is the text of a file; without it the key `text` holds it."""
    meta = dict(keys)
    doc_id = meta.pop("doc_id", None)
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if body is None:
        body = _text(meta, "text")
        # A file has its path to go by; one of many lines has nothing.
        doc_id = "" if doc_id is None else doc_id
    if not isinstance(doc_id, str | None):
        raise Invalid("doc_id_invalid", limit=MAX_ID_LENGTH)
    return SourceDocument(
        doc_id=article.source if doc_id is None else doc_id,
        title=_text(meta, "title"),
        text=body,
        source=_text(meta, "source") or article.source,
        url=_text(meta, "url") or None,
        lang=_text(meta, "lang"),
        meta=meta,
        line=article.line,
    )


def _text(meta: dict[str, Json], name: str) -> str:
    value = meta.pop(name, None)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Invalid("field_invalid", field=name)
    return value
