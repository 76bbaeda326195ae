"""Questions with their answers, from tables, JSON or text, as a document of one section per pair."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from components.ingest.formats import writing
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import FileFlag, Parsed
from tenants.core.errors import Invalid

if TYPE_CHECKING:
    from tenants.core.json import Json

_NAMES = {
    "question": "question questions вопрос вопросы q в".split(),
    "answer": "answer answers ответ ответы a о".split(),
    "category": "category section topic категория раздел тема рубрика".split(),
}
"""Names of columns and keys, case-insensitive."""
_LABEL = re.compile(
    r"[ \t]*+(?:[-*+][ \t]++)?(?:#{1,6}[ \t]++)?(?:\*\*|__)?[ \t]*+(?:(question|вопрос|q|в)|answer|ответ|a|о)"
    r"[ \t]*+(?:№?[ \t]*+\d+)?[ \t]*+[:.][ \t]*+(?:\*\*|__)?[ \t]*+",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6}[ \t]++((?:.*[^ \t#\n])?)[ \t#]*+$")
_MIN_PAIRS = 2
"""A single "Q:" may be a figure of speech; two pairs make an FAQ."""


class Pair(NamedTuple):
    """A question, its answer in Markdown, and the heading above it, if any."""

    question: str
    answer: str
    category: str = ""


def as_document(
    pairs: Sequence[Pair], title: str = "", meta: "Mapping[str, Json] | None" = None, pages: int = 0
) -> Parsed:
    """Return pairs as a document. One without a question or an answer is left out and flagged: `faq_incomplete`."""
    complete = [pair for pair in pairs if pair.question.strip() and pair.answer.strip()]
    blocks: list[str] = []
    for category, group in groupby(complete, key=lambda pair: pair.category.strip()):
        blocks.append(writing.heading(category, 2))
        for pair in group:
            blocks.append(writing.heading(pair.question, 3 if category else 2))
            # Only questions are headings.
            blocks.append(re.sub(r"^[ ]{0,3}#{1,6}[ \t]+", "", pair.answer.strip("\n"), flags=re.MULTILINE))
    flags: tuple[FileFlag, ...] = ("faq_incomplete",) if len(complete) < len(pairs) else ()
    return Parsed(title, "\n\n".join(filter(None, blocks)), "faq", meta or {}, flags, pages)


def pairs_of_rows(rows: Sequence[Sequence[str]]) -> list[Pair]:
    """Return the pairs of a table whose header names questions and answers; none for any other table.

    Further columns follow the answer as "name: value".
    """
    header = [" ".join(name.split()) for name in rows[0]] if rows else []
    columns = [
        next((at for at, name in enumerate(header) if name.casefold() in accepted), None)
        for accepted in _NAMES.values()
    ]
    question, answer, category = columns
    if question is None or answer is None:
        return []
    pairs = []
    for row in rows[1:]:
        cells = [cell.strip() for cell in (*row, *[""] * (len(header) - len(row)))]
        more = [f"{name}: {cells[at]}" for at, name in enumerate(header) if cells[at] and at not in columns]
        text = "\n\n".join([cells[answer], *more]) if cells[answer] else ""
        pairs.append(Pair(cells[question], writing.lines(text), cells[category] if category is not None else ""))
    return pairs


def read_json(data: bytes) -> Parsed:
    """Read a list of objects with a question and an answer each, or an object that holds one such list.

    Codes: `file_undecodable`, `json_invalid`, `json_no_faq`.
    """
    with Invalid("json_invalid").instead_of(ValueError, RecursionError):
        entries = json.loads(decoded(data))
    title = ""
    if isinstance(entries, dict):
        title = entries["title"] if isinstance(entries.get("title"), str) else ""
        lists = [value for value in entries.values() if isinstance(value, list)]
        entries = lists[0] if len(lists) == 1 else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Invalid("json_no_faq")
    names = list(dict.fromkeys(str(name) for entry in entries for name in entry))
    pairs = pairs_of_rows([names, *([_as_text(entry.get(name)) for name in names] for entry in entries)])
    if not pairs:
        raise Invalid("json_no_faq")
    return as_document(pairs, title)


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pairs_of_text(text: str) -> list[Pair]:
    """Return the pairs of a text that marks them: "Q: … A: …", "Вопрос: … Ответ: …"; none when it does not.

    A Markdown heading between pairs is the category of those that follow.
    """
    pairs: list[Pair] = []
    category = ""
    question: list[str] = []
    answer: list[str] | None = None
    for line in [*text.split("\n"), "# "]:
        label, heading = _LABEL.match(line), _HEADING.match(line)
        asks = label is not None and label[1] is not None and line[label.end() :].strip() != ""
        if question and (asks or (heading and not label) or line == "# "):
            asked = " ".join(part.strip() for part in question).strip(" *_")
            pairs.append(Pair(asked, "\n".join(answer or ()).strip("\n"), category))
            question, answer = [], None
        if label and asks:
            question = [line[label.end() :]]
        elif label and label[1] is None and question and answer is None:
            answer = [line[label.end() :]]
        elif heading:
            category = heading[1]
        elif question:
            (question if answer is None else answer).append(line)
        elif line.strip():
            # Text that belongs to no pair: this is an article that quotes some, not an FAQ.
            return []
    return pairs if sum(bool(pair.answer.strip()) for pair in pairs) >= _MIN_PAIRS else []


def pairs_of_sections(text: str) -> list[Pair]:
    """Return the pairs of a Markdown text whose headings are questions; a heading over nothing is a category."""
    pairs: list[Pair] = []
    category = question = ""
    for part in re.split(r"^(?=#{1,6}[ \t])", text, flags=re.MULTILINE):
        heading, _, body = part.partition("\n")
        match = _HEADING.match(heading)
        question = match[1] if match else ""
        if question and body.strip():
            pairs.append(Pair(question, body.strip("\n"), category))
        else:
            category = question or category
    return pairs
