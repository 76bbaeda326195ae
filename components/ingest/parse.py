"""Raw articles read into documents, and every document checked before anything is stored."""

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import yaml
from haystack import component

from components.ingest.changes import Changed, Seen, duplicate
from components.ingest.document import Refusal, Revision, SourceDocument
from components.ingest.files import RawArticle
from components.ingest.metadata import checked_metadata
from tenants.errors import CallerError, Invalid
from tenants.index.protocol import Json

LONGEST_ID = 500
"""Characters of a `doc_id`: what the records' key column holds."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCODINGS = dict(zip(_BYTE_ORDER_MARKS, ("utf-8-sig", "utf-16", "utf-16"), strict=True))


@component
class ArticleParser:
    """Reads Markdown, plain text and JSON Lines of articles.

    A Markdown file may start with YAML front matter; its keys are those of a JSON Lines article. Anything else that
    looks like a header (`Title: …`) is text. A file's `doc_id` is its path unless it names another.

    :param max_characters: the longest text of one document.
    """

    def __init__(self, max_characters: int = 5_000_000) -> None:
        self.max_characters = max_characters

    @component.output_types(revisions=list[Revision], refusals=list[Refusal])
    def run(self, changed: list[Changed], seen: Seen) -> dict[str, list[Revision] | list[Refusal]]:
        """Read what is raw, check everything. What cannot be taken is refused with its place; the others go on.

        :param seen: what the run has met before. A second document of the same id is refused: `doc_id_duplicate`.
        """
        revisions: list[Revision] = []
        refusals: list[Refusal] = []
        for one in changed:
            parsed = self.parse(one.article)
            if isinstance(parsed, Refusal):
                refusals.append(parsed)
            elif seen.is_new(parsed.doc_id, one.article.source):
                revisions.append(Revision(parsed, one.content_hash))
            else:
                refusals.append(duplicate(one.article, parsed.doc_id))
        return {"revisions": revisions, "refusals": refusals}

    def parse(self, article: RawArticle | SourceDocument) -> SourceDocument | Refusal:
        """One article as a document, or why it is refused.

        Codes: `file_undecodable`, `json_invalid`, `doc_id_missing`, `doc_id_invalid`, `text_missing`, `text_too_long`,
        `field_invalid`, `metadata_invalid`.
        """
        doc_id = article.doc_id if isinstance(article, SourceDocument) else ""
        try:
            document = article if isinstance(article, SourceDocument) else _read(article)
            doc_id = document.doc_id
            return self._checked(document)
        except CallerError as error:
            return Refusal(error, article.source, article.line, doc_id)

    def _checked(self, document: SourceDocument) -> SourceDocument:
        if not document.doc_id.strip():
            raise Invalid("doc_id_missing")
        if len(document.doc_id) > LONGEST_ID or not document.doc_id.isprintable():
            raise Invalid("doc_id_invalid", limit=LONGEST_ID)
        if not document.text.strip():
            raise Invalid("text_missing")
        if len(document.text) > self.max_characters:
            raise Invalid("text_too_long", limit=self.max_characters)
        meta = checked_metadata(document.meta)
        for name, value in (("title", document.title), ("text", document.text), ("metadata", json.dumps(meta))):
            _check_encodable(name, value)
        return replace(document, meta=meta)


def _check_encodable(name: str, value: str) -> None:
    """JSON can spell half of a character pair, which no file and no database can hold."""
    try:
        value.encode()
    except UnicodeEncodeError as broken:
        raise Invalid("field_invalid", field=name) from broken


def _read(article: RawArticle) -> SourceDocument:
    text = _decoded(article.data)
    if article.format == "json":
        return _from_keys(_json_object(text), None, article)
    if article.format == "plain":
        return SourceDocument(article.source, "", text, article.source, markup="plain")
    header, body = _front_matter(text)
    return _from_keys(header, body, article)


def _decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _ENCODINGS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as broken:
        raise Invalid("file_undecodable") from broken
    if "\0" in text:
        raise Invalid("file_undecodable")
    return text.replace("\r\n", "\n")


def _json_object(text: str) -> Mapping[str, Json]:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as malformed:
        raise Invalid("json_invalid") from malformed
    if not isinstance(found, dict):
        raise Invalid("json_invalid")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    try:
        # An alias can make a few lines stand for gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(match[1])):
            return {}, text
        found = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(found, dict):
        return {}, text
    return {str(name): _plain(value) for name, value in found.items()}, text[match.end() :]


def _plain(value: object) -> Json:
    """What YAML made of a value, as JSON has it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _from_keys(keys: Mapping[str, Json], body: str | None, article: RawArticle) -> SourceDocument:
    """A document from an article's keys. `body` is the text of a file; without it the key `text` holds it."""
    meta = dict(keys)
    doc_id = meta.pop("doc_id", None)
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if body is None:
        body = _text(meta, "text")
        # A file has its path to go by; one of many lines has nothing.
        doc_id = "" if doc_id is None else doc_id
    if not isinstance(doc_id, str | None):
        raise Invalid("doc_id_invalid", limit=LONGEST_ID)
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
