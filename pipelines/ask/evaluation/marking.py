"""Marks one reply by what its question expects."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from components.language.captions import HEADING_SEPARATOR
from components.language.marks import HEADING_LINE
from components.language.normalise import clean, fold
from components.language.words import words
from components.turn import SHOWN, Citation, Passage, Turn
from tenants.desk.evaluation_questions import Expected

Mark: TypeAlias = Literal["answered", "offered", "refused", "missed", "wrong"]
"""The first three are right: the answer, the article, or the refusal that was expected. `missed` says nothing false:
there is no answer, and none of the articles offered is the right one. `wrong` is an answer that is not the right one.
"""
MARKS: tuple[Mark, ...] = get_args(Mark)
RIGHT: frozenset[Mark] = frozenset({"answered", "offered", "refused"})
OFFERS_READ = 3
"""Number of offered articles that a customer is assumed to read."""

Names: TypeAlias = Mapping[str, Sequence[tuple[str, frozenset[str]]]]
"""Names of articles, with all parts of each, by one of these parts."""

_CITATION = re.compile(r"\[\d+\]")
_GROUPED = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_PATH = re.compile(r"\s*[›>]\s*")


def mark(turn: Turn, expected: Expected) -> Mark:
    if expected.refused:
        return "wrong" if turn.outcome in SHOWN else "refused"
    if turn.outcome in SHOWN:
        return "answered" if _answers_rightly(turn, expected) else "wrong"
    offered = (article.passage for article in turn.reply.articles[:OFFERS_READ])
    return "offered" if any(_is_expected(passage, expected) for passage in offered) else "missed"


def _answers_rightly(turn: Turn, expected: Expected) -> bool:
    """Return whether the answer shows the expected facts; without facts, whether it cites the expected article."""
    if expected.facts:
        return holds_all(turn.reply.text, expected.facts)
    return any(is_article(citation.passage, expected.article, citation.span) for citation in _citations(turn))


def _is_expected(passage: Passage, expected: Expected) -> bool:
    """Return whether a section that is offered is the expected article, or holds the expected facts."""
    if expected.article:
        return is_article(passage, expected.article)
    return holds_all(passage.text, expected.facts)


def cited(turn: Turn) -> Iterator[Passage]:
    return (citation.passage for citation in _citations(turn))


def _citations(turn: Turn) -> Iterator[Citation]:
    citations = turn.draft.citations if turn.draft is not None else ()
    return (citation for citation in citations if citation.origin == "primary")


def holds_all(text: str, facts: Sequence[str]) -> bool:
    stems = _stems(_CITATION.sub(" ", text))
    return all(any(_within(_stems(wording), stems) for wording in fact.split("|")) for fact in facts)


def is_article(passage: Passage, named: str, span: tuple[int, int] | None = None) -> bool:
    """Return whether a passage belongs to the article or section with this title, heading, id or path.

    :param span: the quoted part, as offsets into the passage's text: of several sections in the text, only those that
        it is part of count.
    """
    return bool(named_by(passage, by_part((named,)), span))


def by_part(names: Iterable[str]) -> Names:
    """Return the names by the longest part that a passage needs to be named so."""
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for name in names:
        for needed in {frozenset({_name(name)}), frozenset(map(_name, _PATH.split(name)))}:
            found.setdefault(max(needed, key=len), []).append((name, needed))
    return found


def named_by(passage: Passage, names: Names, span: tuple[int, int] | None = None) -> set[str]:
    """Return those of the names that are the title, heading, id or path of a passage's article or section.

    :param span: as in `is_article`.
    """
    own = set(map(_name, _names(passage, span)))
    return {name for part in own for name, needed in names.get(part, ()) if needed <= own}


def _names(passage: Passage, span: tuple[int, int] | None) -> Iterator[str]:
    yield from (passage.doc_id, passage.title)
    for heading in (passage.heading, *_inner_headings(passage.text, span)):
        yield from (heading, *heading.split(HEADING_SEPARATOR))


def _inner_headings(text: str, span: tuple[int, int] | None) -> Iterator[str]:
    """Yield the headings of small sections, which share a passage and have their headings as lines of its text."""
    lines = list(HEADING_LINE.finditer(text))
    start, end = span or (0, len(text))
    yield from (line[1] for line in lines if start < line.start() < end)
    below: int | None = None
    for line in reversed([line for line in lines if line.start() <= start]):
        # A heading further up holds for the section, too, if only headings are between them.
        if below is not None and text[line.end() : below].strip():
            break
        yield line[1]
        below = line.start()


def _name(text: str) -> str:
    return " ".join(fold(clean(text)).split()).strip(' .?!«»"')


def _stems(text: str) -> tuple[str, ...]:
    return tuple(word.stem for word in words(_GROUPED.sub("", clean(text))))


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return bool(part) and any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))
