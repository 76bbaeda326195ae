"""Pieces packed into chunks, section by section."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent

from components.ingest.markdown import Block
from components.ingest.pieces import Piece, is_code_entry, join, pieces
from components.ingest.tokens import count_tokens
from components.language.sentences import sentence_spans
from components.turn import Frozen

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes(Frozen):
    """Chunk sizes in tokens (`count_tokens`).

    :param minimum: a chunk is full once it holds this much and a paragraph ends.
    :param maximum: no chunk holds more.
    :param overlap: how much of a chunk's end is repeated at the start of the next one of the same section.
    :param fragment: a chunk of less is merged with a neighbour.
    """

    minimum: int
    maximum: int
    overlap: int
    fragment: int


@dataclass(frozen=True, slots=True)
class Part(Frozen):
    """Text under one heading path. `page` is where it begins, 0 when the document has no pages."""

    path: Path
    text: str
    tokens: int
    page: int = 0


def packed(blocks: Sequence[Block], title: str, sizes: Sizes, *, apart: bool = False) -> list[Part]:
    """The chunks of a document in order, each with its heading path below the title.

    :param apart: keep every section to itself however small it is.
    """
    drafts = _drafts(blocks, title, sizes)
    merged: list[tuple[Part, ...]] = []
    for at, part in enumerate(drafts):
        leads_on = (
            at + 1 < len(drafts) and len(drafts[at + 1].path) > len(part.path) and _is_below(drafts[at + 1], part)
        )
        if merged and not apart and _mergeable(merged[-1], part, sizes, leads_on=leads_on):
            merged[-1] = (*merged[-1], part)
        else:
            merged.append((part,))
    return [_rendered(parts, sizes) for parts in merged]


def _drafts(blocks: Sequence[Block], title: str, sizes: Sizes) -> list[Part]:
    drafts: list[Part] = []
    sections = list(_sections(blocks, title))
    for at, (path, content) in enumerate(sections):
        if content:
            broken = pieces(content, limit=sizes.maximum - sizes.fragment, whole=sizes.maximum)
            groups = _groups(broken, sizes)
            drafts.extend(Part(path, whole.text, whole.tokens, whole.page) for whole in map(join, groups))
        elif path and not (at + 1 < len(sections) and sections[at + 1][0][: len(path)] == path):
            # A heading over nothing: its words would be lost unless a neighbour shows them.
            drafts.append(Part(path, "", 0))
    if not drafts and title:
        drafts.append(Part((), title, count_tokens(title)))
    return drafts


def _sections(blocks: Sequence[Block], title: str) -> Iterator[tuple[Path, list[Block]]]:
    path: list[tuple[int, str]] = []
    content: list[Block] = []
    opened = False
    for block in blocks:
        if block.kind != "heading":
            content.append(block)
            continue
        if content or opened:
            yield tuple(text for _, text in path), content
        content = []
        while path and path[-1][0] >= block.level:
            path.pop()
        opened = bool(path) or block.text.casefold() != title.casefold()
        if opened:
            path.append((block.level, block.text))
    if content or opened:
        yield tuple(text for _, text in path), content


@dataclass(slots=True)
class _Group:
    """A chunk of one section while it fills: its own pieces, and those repeated from the chunk before."""

    own: list[Piece]
    repeated: list[Piece]

    @property
    def size(self) -> int:
        return sum(piece.tokens for piece in (*self.repeated, *self.own))


def _groups(broken: Sequence[Piece], sizes: Sizes) -> list[list[Piece]]:
    groups = [_Group([], [])]
    for piece in broken:
        current = groups[-1]
        overflows = current.size + piece.tokens > sizes.maximum
        if current.own and (overflows or (current.size >= sizes.minimum and not current.own[-1].introduces)):
            moved: list[Piece] = []
            if overflows and len(current.own) > 1 and current.own[-1].introduces:
                moved = [current.own.pop()] if current.own[-1].tokens + piece.tokens <= sizes.maximum else []
            groups.append(_Group(moved, _overlap(current.own, sizes.overlap)))
            if groups[-1].size + piece.tokens > sizes.maximum:
                groups[-1].repeated = []
        groups[-1].own.append(piece)
    if len(groups) > 1:
        _fill_last(groups, sizes)
    return [[*group.repeated, *group.own] for group in groups if group.own]


def _overlap(own: Sequence[Piece], limit: int) -> list[Piece]:
    """The last whole sentences and list items of a chunk up to `limit` tokens; a single one up to twice that."""
    repeated: list[Piece] = []
    size = 0
    for piece in reversed(own):
        if not piece.repeatable:
            break
        for start, end in reversed(sentence_spans(piece.text)):
            sentence = piece.text[start:end]
            tokens = count_tokens(sentence)
            if size + tokens > (limit if repeated else 2 * limit):
                return repeated[::-1]
            repeated.append(Piece(sentence, tokens, piece.before if start == 0 else " ", page=piece.page))
            size += tokens
    return repeated[::-1]


def _fill_last(groups: list[_Group], sizes: Sizes) -> None:
    """A fragment at the end of a section joins the chunk before, or takes pieces over from it."""
    *_, before, last = groups
    tokens = sum(piece.tokens for piece in last.own)
    if tokens >= sizes.fragment:
        return
    if before.size + tokens <= sizes.maximum:
        before.own.extend(last.own)
        last.own = []
        return
    last.repeated = []
    while last.size < sizes.fragment and len(before.own) > 1:
        if last.size + before.own[-1].tokens > sizes.maximum or before.size - before.own[-1].tokens < sizes.fragment:
            return
        last.own.insert(0, before.own.pop())


def _is_below(part: Part, ancestor: Part) -> bool:
    return part.path[: len(ancestor.path)] == ancestor.path


def _mergeable(parts: tuple[Part, ...], part: Part, sizes: Sizes, *, leads_on: bool) -> bool:
    small_before = sum(earlier.tokens for earlier in parts) < sizes.fragment
    if not (small_before or (part.tokens < sizes.fragment and not leads_on)):
        return False
    # Under a code's own heading nothing else may stand: an answer about E20 must not quote E25.
    if any(heading for earlier in (*parts, part) for heading in earlier.path if is_code_entry(heading)):
        return False
    return _rendered((*parts, part), sizes).tokens <= sizes.maximum


def _rendered(parts: tuple[Part, ...], sizes: Sizes) -> Part:
    """Merged parts as one: one heading path for all, other headings as lines of the text."""
    large_enough = [part for part in parts if part.tokens >= sizes.fragment]
    path = large_enough[0].path if len(large_enough) == 1 else _common([part.path for part in large_enough or parts])
    lines: list[str] = []
    last_path = path
    for part in parts:
        shared = len(_common([last_path, part.path]))
        lines.extend(part.path[shared:])
        lines.append(part.text)
        last_path = part.path
    text = "\n\n".join(line for line in lines if line)
    if text[:1] in " \n":
        text = dedent(text).strip()
    text = text or (path[-1] if path else "")
    return Part(path, text, count_tokens(text), next((part.page for part in parts if part.page), 0))


def _common(paths: Sequence[Path]) -> Path:
    first, *following = paths
    length = 0
    while all(len(path) > length and path[length] == first[length] for path in (first, *following)):
        length += 1
    return first[:length]
