"""Questions with their answers, from tables, JSON or text, as a document of one section per pair."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from components.ingest.formats import writing
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import FileFlag, Parsed
from components.turn import Frozen
from tenants.errors import Invalid

if TYPE_CHECKING:
    from tenants.index.protocol import Json

QUESTION = frozenset({"question", "questions", "вопрос", "вопросы", "q", "в"})
ANSWER = frozenset({"answer", "answers", "ответ", "ответы", "a", "о"})
CATEGORY = frozenset({"category", "section", "topic", "категория", "раздел", "тема", "рубрика"})
"""What columns and keys may be called, letter case aside."""

_MARK = r"[ \t]*+(?:[-*+][ \t]++)?(?:#{1,6}[ \t]++)?(?:\*\*|__)?[ \t]*+"
_QUESTION_LABEL = rf"{_MARK}(?:question|вопрос|q|в)[ \t]*+(?:№?[ \t]*+\d+)?[ \t]*+[:.][ \t]*+(?:\*\*|__)?[ \t]*+(?=\S)"
_ANSWER_LABEL = rf"{_MARK}(?:answer|ответ|a|о)[ \t]*+(?:№?[ \t]*+\d+)?[ \t]*+[:.][ \t]*+(?:\*\*|__)?[ \t]*+"
_QUESTION_LINE = re.compile(_QUESTION_LABEL, re.IGNORECASE)
_ANSWER_LINE = re.compile(_ANSWER_LABEL, re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*$")
_MIN_PAIRS = 2
"""One "Q:" may be a manner of speaking; two, each with an answer, are an FAQ."""


@dataclass(frozen=True, slots=True)
class Pair(Frozen):
    """A question and its answer.

    :param answer: Markdown.
    :param category: the heading that the pair stands under, if any.
    """

    question: str
    answer: str
    category: str = ""


def as_document(
    pairs: Sequence[Pair], title: str = "", meta: "Mapping[str, Json] | None" = None, pages: int = 0
) -> Parsed:
    """Pairs as a document. One without a question or an answer is left out, and a flag says so: `faq_incomplete`."""
    complete = [pair for pair in pairs if pair.question.strip() and pair.answer.strip()]
    blocks: list[str] = []
    for category, group in groupby(complete, key=lambda pair: pair.category.strip()):
        blocks.append(writing.heading(category, 2))
        for pair in group:
            blocks.append(writing.heading(pair.question, 3 if category else 2))
            blocks.append(_without_headings(pair.answer))
    flags: tuple[FileFlag, ...] = ("faq_incomplete",) if len(complete) < len(pairs) else ()
    return Parsed(title, "\n\n".join(filter(None, blocks)), "faq", meta or {}, flags, pages)


def _without_headings(answer: str) -> str:
    """A heading inside of an answer stays a line of it; only questions are headings."""
    return re.sub(r"^[ ]{0,3}#{1,6}[ \t]+", "", answer.strip("\n"), flags=re.MULTILINE)


def pairs_of_rows(rows: Sequence[Sequence[str]]) -> list[Pair]:
    """The pairs of a table whose header names questions and answers; empty for any other table.

    Further columns follow the answer as "name: value".
    """
    if len(rows) < 2:
        return []
    names = [" ".join(name.split()).casefold() for name in rows[0]]
    question, answer, category = (_column(names, accepted) for accepted in (QUESTION, ANSWER, CATEGORY))
    if question is None or answer is None:
        return []
    other_columns = [at for at in range(len(names)) if at not in {question, answer, category}]
    pairs = []
    for row in rows[1:]:
        cells = [*row, *[""] * (len(names) - len(row))]
        more = [f"{rows[0][at].strip()}: {cells[at].strip()}" for at in other_columns if cells[at].strip()]
        text = "\n\n".join(part for part in (cells[answer].strip(), *more) if part) if cells[answer].strip() else ""
        pairs.append(Pair(cells[question], writing.lines(text), cells[category] if category is not None else ""))
    return pairs


def _column(names: Sequence[str], accepted: frozenset[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name in accepted), None)


def read_json(data: bytes) -> Parsed:
    """A list of objects with a question and an answer each, or an object that holds one such list.

    Codes: `file_undecodable`, `json_invalid`, `json_no_faq`.
    """
    try:
        entries = json.loads(decoded(data))
    except (ValueError, RecursionError) as malformed:
        raise Invalid("json_invalid") from malformed
    title = ""
    if isinstance(entries, dict):
        title = entries["title"] if isinstance(entries.get("title"), str) else ""
        lists = [value for value in entries.values() if isinstance(value, list)]
        entries = lists[0] if len(lists) == 1 else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise Invalid("json_no_faq")
    names = list(dict.fromkeys(str(name) for entry in entries for name in entry))
    pairs = pairs_of_rows([names, *([_as_text(entry.get(name)) for name in names] for entry in entries)])
    if not pairs:
        raise Invalid("json_no_faq")
    return as_document(pairs, title)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pairs_of_text(text: str) -> list[Pair]:
    """The pairs of a text that marks them: "Q: … A: …", "Вопрос: … Ответ: …"; empty when it does not.

    A Markdown heading between pairs is the category of those that follow.
    """
    pairs: list[Pair] = []
    category = ""
    question: list[str] = []
    answer: list[str] | None = None

    def close() -> None:
        if question:
            asked = " ".join(part.strip() for part in question).strip(" *_")
            pairs.append(Pair(asked, "\n".join(answer or ()).strip("\n"), category))

    for line in text.split("\n"):
        asked, answered, heading = _QUESTION_LINE.match(line), _ANSWER_LINE.match(line), _HEADING.match(line)
        if asked:
            close()
            question, answer = [line[asked.end() :]], None
        elif answered and question and answer is None:
            answer = [line[answered.end() :]]
        elif heading:
            close()
            question, answer, category = [], None, heading[2]
        elif answer is not None:
            answer.append(line)
        elif question:
            question.append(line)
        elif line.strip():
            # Text that belongs to no pair: this is an article that quotes some, not an FAQ.
            return []
    close()
    return pairs if sum(bool(pair.answer.strip()) for pair in pairs) >= _MIN_PAIRS else []


def pairs_of_sections(text: str) -> list[Pair]:
    """The pairs of a Markdown text whose headings are questions; a heading over nothing is a category."""
    pairs: list[Pair] = []
    category = question = ""
    answer: list[str] = []
    for line in [*text.split("\n"), "# "]:
        heading = _HEADING.match(line) if line != "# " else None
        if heading is None and line != "# ":
            answer.append(line)
            continue
        body = "\n".join(answer).strip("\n")
        if question and body.strip():
            pairs.append(Pair(question, body, category))
        elif question:
            category = question
        question, answer = heading[2] if heading else "", []
    return pairs
