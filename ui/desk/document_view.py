"""View of a document for its page: the differences between two versions, and its edges."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, TypeAlias, get_args

from components.ingest.records import PROPERTIES
from components.language.texts import text_or
from components.turn import EdgeKind
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge import documents
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.documents import DocumentRecord

Direction: TypeAlias = Literal["out", "in"]
_LINES_COMPARED = 1_000
"""Size limit per version, without the lines that both begin and end with. Longer texts are shown without a comparison.

The comparison takes up to cubic time where lines repeat: 0.1 s for 1,000 lines, 6 s for 4,000.
"""

_CONTEXT = 2
_SYMMETRIC = "related_to"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Line of a comparison; a `gap` replaces omitted unchanged lines."""

    kind: Literal["same", "added", "removed", "gap"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tie:
    """Edge from the point of view of one of its documents. `title` is empty if the other document does not exist."""

    edge: Edge
    direction: Direction
    other: str
    title: str

    @property
    def choice(self) -> str:
        return f"{self.edge.kind}:{self.direction}"


TIES: tuple[str, ...] = tuple(
    f"{kind}:{direction}"
    for kind in get_args(EdgeKind)
    for direction in get_args(Direction)
    if (kind, direction) != (_SYMMETRIC, "in")
)


def difference(old: str, new: str) -> tuple[DiffLine, ...] | None:
    """Compare two versions; None if too many lines differ."""
    before, after = old.splitlines(), new.splitlines()
    first = max(0, _alike(before, after) - _CONTEXT)
    before, after = before[first:], after[first:]
    last = max(0, _alike(before[::-1], after[::-1]) - _CONTEXT)
    before, after = before[: len(before) - last], after[: len(after) - last]
    if max(len(before), len(after)) > _LINES_COMPARED + 2 * _CONTEXT:
        return None
    return tuple(_lines(before, after, begins_late=first > 0))


def _alike(before: list[str], after: list[str]) -> int:
    """Return the number of lines that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _lines(before: list[str], after: list[str], *, begins_late: bool) -> Iterator[DiffLine]:
    for number, group in enumerate(SequenceMatcher(None, before, after).get_grouped_opcodes(_CONTEXT)):
        if number or begins_late or group[0][1]:
            yield DiffLine("gap")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (DiffLine("same", line) for line in before[start:end])
                continue
            yield from (DiffLine("removed", line) for line in before[start:end])
            yield from (DiffLine("added", line) for line in after[new_start:new_end])


def ties(doc_id: str, edges: Iterable[Edge]) -> tuple[Tie, ...]:
    known = tuple(edges)
    others = [edge.to_doc if edge.from_doc == doc_id else edge.from_doc for edge in known]
    records = documents.find(others)
    return tuple(
        Tie(
            edge,
            "out" if edge.from_doc == doc_id or edge.kind == _SYMMETRIC else "in",
            other,
            records[other].title if other in records else "",
        )
        for edge, other in zip(known, others, strict=True)
    )


def edge_between(doc_id: str, choice: str, other: str, weight: float) -> Edge:
    if choice not in TIES:
        raise Invalid("field_invalid")
    kind, _, direction = choice.partition(":")
    ends = (doc_id, other) if direction == "out" else (other, doc_id)
    return Edge(ends[0], kind, ends[1], weight)


def changes(record: DocumentRecord, wanted: Mapping[str, Json]) -> dict[str, Json]:
    """Return the changes requested by a form that shows all properties; values set by the source are skipped."""
    now = {name: _plain(getattr(record, name)) for name in PROPERTIES}
    return {
        name: None if value == _plain(record.given.get(name)) else value
        for name, value in wanted.items()
        if value != now[name]
    }


def flag_texts(flags: Iterable[str], locale: str) -> tuple[str, ...]:
    """Return the meanings of flags; unknown flags from sources are returned unchanged."""
    return tuple(text_or(flag, f"documents.flag.{flag}", locale) for flag in flags)


def _plain(value: Json) -> Json:
    return list(value) if isinstance(value, tuple) else value
