"""Markdown, with its front matter, and plain text."""

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

import yaml

from components.ingest.formats import faq
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import Parsed

if TYPE_CHECKING:
    from tenants.core.json import Json

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)

_TITLE = re.compile(r"\s*+#[ \t]++(\S(?:.*[^ \t#\n])?)[ \t#]*+(?:\n|\Z)")
_MAX_BRACKETS = 1_000
"""Brackets of front matter that are read: the scanner takes quadratic time over nested ones."""


def read_markdown(data: bytes) -> Parsed:
    """Return a Markdown file. Front matter is metadata, and `faq: true` in it makes every heading a question.

    Without it a text that marks its questions and answers ("Q: … A: …") is an FAQ too. Anything else that looks like a
    header (`Title: …`) is text.
    """
    keys, body = _front_matter(decoded(data))
    meta = {name: value for name, value in keys.items() if name != "faq"}
    title, content = _title(body)
    pairs = faq.pairs_of_sections(content) if keys.get("faq") is True else faq.pairs_of_text(content)
    if not pairs:
        return Parsed("", body, meta=meta)
    return faq.as_document(pairs, "" if "title" in meta else title, meta)


def read_plain(data: bytes) -> Parsed:
    """Read a text file: its paragraphs, or its pairs if it marks questions and answers."""
    text = decoded(data)
    pairs = faq.pairs_of_text(text)
    return faq.as_document(pairs) if pairs else Parsed("", text, "plain")


def _title(body: str) -> tuple[str, str]:
    """Return the heading that a text begins with, if any, and what follows."""
    match = _TITLE.match(body)
    return (match[1], body[match.end() :]) if match else ("", body)


def _front_matter(text: str) -> "tuple[Mapping[str, Json], str]":
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    if match[1].count("[") + match[1].count("{") > _MAX_BRACKETS:
        return {}, text
    try:
        # Aliases can expand a few lines to gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(match[1])):
            return {}, text
        front_matter = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(front_matter, dict):
        return {}, text
    return {str(name): _plain(value) for name, value in front_matter.items()}, text[match.end() :]


def _plain(value: object) -> "Json":
    """Convert a parsed YAML value to JSON types."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
