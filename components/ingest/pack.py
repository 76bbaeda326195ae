"""Blocks packed into chunks, section by section.

Haystack's `RecursiveDocumentSplitter` (3.4) does not fit: it cuts tables between any two cells, knows neither code
entries nor the sentence that introduces a list, and repeats no table header.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

from components.ingest.markdown import Block, indent
from components.ingest.tokens import count_tokens
from components.language.captions import heading_line
from components.language.identifiers import codes
from components.language.sentences import sentence_spans
from components.turn import Frozen

Path = tuple[str, ...]

_ENTRY = re.compile(
    r"\W{0,4}(?:(?:ошибка|код|error|code|fault)\s+(?:ошибки\s+|code\s+)?)?[^\W_][\w./-]{0,15}(?:\s\d{1,6})?\W?\s*(?:[—–:]|-\s)",
    re.IGNORECASE,
)
_PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class Sizes(Frozen):
    """Chunk sizes in tokens (`count_tokens`).

    :param minimum: a chunk is full once it holds this much and a paragraph ends.
    :param maximum: no chunk holds more.
    :param overlap: how much of a chunk's end is repeated at the start of the next one of the same section.
    :param fragment: a section with less is merged with a neighbour.
    """

    minimum: int
    maximum: int
    overlap: int
    fragment: int


@dataclass(frozen=True, slots=True)
class Part(Frozen):
    """The text of one chunk under one heading path.

    :param sections: the first and the last section that it holds text of, by their numbers.
    :param page: where it begins, 0 when the document has no pages.
    :param bounds: the first and the last chunk of those sections.
    """

    path: Path
    text: str
    tokens: int
    sections: tuple[int, int]
    page: int = 0
    bounds: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class _Piece(Frozen):
    """Text that is never cut.

    :param before: the white space between it and the piece before.
    :param repeatable: it may be repeated as overlap; false for tables and code.
    """

    text: str
    tokens: int
    before: str = _PARAGRAPH
    repeatable: bool = True
    page: int = 0


def is_code_entry(text: str) -> bool:
    """Return whether `text` explains a code: it starts like "E20 — …" or "Ошибка E20: …"."""
    match = _ENTRY.match(text)
    return bool(match and codes(match.group()))


def packed(blocks: Sequence[Block], title: str, sizes: Sizes, *, apart: bool = False) -> list[Part]:
    """Return the chunks of a document in order, each with its heading path below the title.

    :param apart: keep every section to itself however small it is.
    """
    sections = list(sections_of(blocks, title))
    drafts: list[Part] = []
    number = 0
    for at, (path, content) in enumerate(sections):
        # Headings without text part procedures, but what is under one heading path is read together.
        number += bool(at) and path != sections[at - 1][0]
        following = sections[at + 1][0] if at + 1 < len(sections) else ()
        parts = _filled(_pieces(content, sizes), sizes)
        drafts += (replace(part, path=path, sections=(number, number)) for part in parts)
        if not content and path and following[: len(path)] != path:
            # A heading over nothing: its words would be lost unless a neighbour shows them.
            drafts.append(Part(path, "", 0, (number, number)))
    if not drafts and title:
        drafts.append(Part((), title, count_tokens(title), (0, 0)))
    groups: list[list[Part]] = []
    for at, part in enumerate(drafts):
        following = drafts[at + 1].path if at + 1 < len(drafts) else ()
        leads_on = len(following) > len(part.path) and following[: len(part.path)] == part.path
        if groups and not apart and _mergeable(groups[-1], part, sizes, leads_on=leads_on):
            groups[-1].append(part)
        else:
            groups.append([part])
    return _bounded([_merged(group) for group in groups])


def sections_of(blocks: Sequence[Block], title: str) -> Iterator[tuple[Path, list[Block]]]:
    """Yield the sections of a document: the headings above each, below the title, and its blocks."""
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
        # A heading without text, of a component that is not shown, still ends the section before it.
        opened = bool(block.text) and (bool(path) or block.text.casefold() != title.casefold())
        if opened:
            path.append((block.level, block.text))
    if content or opened:
        yield tuple(text for _, text in path), content


def _pieces(blocks: Sequence[Block], sizes: Sizes) -> Iterator[_Piece]:
    """Yield one section as pieces. A list, with the sentence that introduces it, is one piece where it fits."""
    at = 0
    while at < len(blocks):
        end = _group_end(blocks, at)
        group = [_piece(blocks, place) for place in range(at, end)]
        if _size(group) > sizes.maximum or len(group) == 1:
            limit = sizes.maximum - sizes.fragment
            group = [
                replace(part, page=blocks[place].page)
                for place in range(at, end)
                for part in _broken(blocks[place], _piece(blocks, place), limit, sizes.maximum)
            ]
            together = 2 if end > at + 1 and blocks[at].kind == "prose" and _size(group[:2]) <= sizes.maximum else 1
            yield _joined(group[:together])
            yield from group[together:]
        else:
            yield _joined(group)
        at = end


def _group_end(blocks: Sequence[Block], start: int) -> int:
    """Return where the blocks end that belong together: a list, or an introduction and what it introduces."""
    first, end = blocks[start], start + 1
    entry = is_code_entry(_body(first))
    if (
        first.kind == "prose"
        and first.text.endswith(":")
        and end < len(blocks)
        and blocks[end].kind in {"table", "code"}
    ):
        return end + 1
    if (first.kind == "prose" and (entry or first.text.endswith(":"))) or (first.kind == "item" and not entry):
        while end < len(blocks) and blocks[end].kind == "item" and not is_code_entry(_body(blocks[end])):
            end += 1
    return end


def _body(block: Block) -> str:
    return block.children[0].text if block.children else block.text


def _piece(blocks: Sequence[Block], at: int) -> _Piece:
    block = blocks[at]
    before = "\n" if at and block.kind == blocks[at - 1].kind == "item" else _PARAGRAPH
    return _Piece(block.text, count_tokens(block.text), before, block.kind not in {"table", "code"}, block.page)


def _joined(parts: Sequence[_Piece]) -> _Piece:
    first = parts[0]
    text = first.text + "".join(part.before + part.text for part in parts[1:])
    return _Piece(text, _size(parts), first.before, all(part.repeatable for part in parts), first.page)


def _broken(block: Block, piece: _Piece, limit: int, whole: int) -> Iterator[_Piece]:
    """Break a block that is too long: over `whole` tokens for tables, code and code entries, else over `limit`."""
    entry = is_code_entry(_body(block))
    if piece.tokens <= (limit if piece.repeatable and not entry else whole):
        yield piece
    elif block.kind == "table":
        yield from _grouped(block.text[len(block.head) + 1 :].split("\n"), whole, f"{block.head}\n")
    elif block.kind == "code":
        opening, *lines, closing = block.text.split("\n")
        yield from _grouped(lines, whole, f"{opening}\n", f"\n{closing}")
    elif block.children:
        yield from _item_parts(block, piece.before, limit, whole)
    elif entry:
        # Every part names the code.
        first, *others = (block.text[start:end] for start, end in sentence_spans(block.text))
        yield from _grouped(others, limit, f"{first} ", separator=" ")
    else:
        yield from _sentences(block.text, limit)


def _item_parts(block: Block, before: str, limit: int, whole: int) -> Iterator[_Piece]:
    # The marker is a few tokens itself, so the parts have to leave room for it.
    room = count_tokens(block.head)
    marker = block.head
    for at, child in enumerate(block.children):
        for part in _broken(child, _piece(block.children, at), limit - room, whole - room):
            goes_on = part.before == " " and marker != block.head
            text = part.text if goes_on else indent(part.text, marker)
            yield _Piece(text, count_tokens(text), part.before if marker != block.head else before, part.repeatable)
            marker = " " * len(block.head)


def _sentences(text: str, limit: int) -> Iterator[_Piece]:
    """Yield the sentences of `text`; one over the limit is cut at words."""
    before, previous_end = _PARAGRAPH, 0
    for start, end in sentence_spans(text):
        if previous_end:
            before = text[previous_end:start] or " "
        previous_end = end
        for part in _cut(text[start:end], limit):
            yield _Piece(part, count_tokens(part), before)
            before = " "


def _grouped(
    parts: Sequence[str], limit: int, head: str = "", tail: str = "", separator: str = "\n"
) -> Iterator[_Piece]:
    """Yield lines or sentences in groups of up to `limit` tokens, `head` and `tail` around each group."""
    room = limit - count_tokens(head) - count_tokens(tail)
    if room < limit // 2:
        # A head that leaves no room is not worth repeating.
        parts, head, tail, room = [*head.strip().split("\n"), *parts, *tail.split()], "", "", limit
    group: list[str] = []
    for part in [cut for whole in parts for cut in _cut(whole, room)]:
        if group and sum(map(count_tokens, (*group, part))) > room:
            yield _verbatim(head + separator.join(group) + tail)
            group = []
        group.append(part)
    yield _verbatim(head + separator.join(group) + tail)


def _verbatim(text: str) -> _Piece:
    return _Piece(text, count_tokens(text), repeatable=False)


def _cut(text: str, limit: int) -> Iterator[str]:
    """Cut `text` at white space, and inside a word only where a single one is over the limit."""
    if count_tokens(text) <= limit:
        yield text
        return
    start = end = size = 0
    # A token has at least one character, so `limit` characters are never over the limit.
    for word in re.finditer(rf"\S{{1,{limit}}}", text):
        tokens = count_tokens(word.group())
        if size and size + tokens > limit:
            yield text[start:end]
            size = 0
        start = start if size else word.start()
        end, size = word.end(), size + tokens
    if size:
        yield text[start:end]


def _filled(pieces: Iterable[_Piece], sizes: Sizes) -> Iterator[Part]:
    """Fill chunks with the pieces of one section."""
    chunks: list[list[_Piece]] = []
    repeated = 0
    for piece in pieces:
        if not chunks or _size(chunks[-1]) + piece.tokens > sizes.maximum or _size(chunks[-1]) >= sizes.minimum:
            overlap = _overlap(chunks[-1][repeated:], sizes.overlap) if chunks else []
            overlap = overlap if _size(overlap) + piece.tokens <= sizes.maximum else []
            repeated = len(overlap)
            chunks.append(overlap)
        chunks[-1].append(piece)
    # A fragment at the end of a section joins the chunk before.
    own = chunks[-1][repeated:] if len(chunks) > 1 else []
    if own and _size(own) < sizes.fragment and _size(chunks[-2]) + _size(own) <= sizes.maximum:
        chunks[-2:] = [[*chunks[-2], *own]]
    for whole in map(_joined, chunks):
        yield Part((), whole.text, whole.tokens, (0, 0), whole.page)


def _size(pieces: Iterable[_Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _overlap(own: Sequence[_Piece], limit: int) -> list[_Piece]:
    """Return the last whole sentences and list items of a chunk up to `limit` tokens; a single one up to twice that."""
    repeated: list[_Piece] = []
    for piece in reversed(own):
        if not piece.repeatable:
            break
        for start, end in reversed(sentence_spans(piece.text)):
            sentence = piece.text[start:end]
            tokens = count_tokens(sentence)
            if _size(repeated) + tokens > (limit if repeated else 2 * limit):
                return repeated[::-1]
            before = piece.before if start == 0 else "\n" if "\n" in piece.text[:start][-2:] else " "
            repeated.append(_Piece(sentence, tokens, before, page=piece.page))
    return repeated[::-1]


def _mergeable(group: Sequence[Part], part: Part, sizes: Sizes, *, leads_on: bool) -> bool:
    small_before = sum(earlier.tokens for earlier in group) < sizes.fragment
    if not (small_before or (part.tokens < sizes.fragment and not leads_on)):
        return False
    # A section about one code takes no other text: an answer about E20 must not quote E25.
    if any(is_code_entry(heading) for earlier in (*group, part) for heading in earlier.path):
        return False
    return _merged([*group, part]).tokens <= sizes.maximum


def _merged(group: Sequence[Part]) -> Part:
    """Return merged parts as one. Every heading that does not hold for all of them is a heading line of the text."""
    path = common = _common([part.path for part in group])
    lines: list[str] = []
    for part in group:
        known = len(_common([path, part.path]))
        own = enumerate(part.path[known:], known - len(common))
        lines += [*(heading_line(heading, depth) for depth, heading in own), part.text]
        path = part.path
    text = _PARAGRAPH.join(filter(None, lines))
    if text[:1].isspace():
        text = dedent(text).strip()
    text = text or (common[-1] if common else "")
    page = next((part.page for part in group if part.page), 0)
    return Part(common, text, count_tokens(text), (group[0].sections[0], group[-1].sections[1]), page)


def _common(paths: Sequence[Path]) -> Path:
    first, *following = paths
    length = 0
    while all(len(path) > length and path[length] == first[length] for path in (first, *following)):
        length += 1
    return first[:length]


def _bounded(parts: Sequence[Part]) -> list[Part]:
    """Give each part the bounds of its sections."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, part in enumerate(parts):
        for section in range(part.sections[0], part.sections[1] + 1):
            first.setdefault(section, at)
            last[section] = at
    return [replace(part, bounds=(first[part.sections[0]], last[part.sections[1]])) for part in parts]
