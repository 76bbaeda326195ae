"""Blocks broken into pieces: what a chunk is packed from, never cut where a reader would lose the sense."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from components.ingest.markdown import Block, indent
from components.ingest.tokens import count_tokens
from components.language.identifiers import codes
from components.language.sentences import sentence_spans
from components.turn import Frozen

_ENTRY = re.compile(
    r"\W{0,4}(?:(?:ошибка|код|error|code|fault)\s+(?:ошибки\s+|code\s+)?)?[^\W_][\w./-]{0,15}(?:\s\d{1,6})?\W?\s*(?:[—–:]|-\s)",
    re.IGNORECASE,
)
_PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class Piece(Frozen):
    """Text that stays together.

    :param before: the white space that parts it from the piece before.
    :param repeatable: it may be shown again at the start of the next chunk as overlap; false for tables and code.
    :param page: where it begins, 0 when the document has no pages.
    """

    text: str
    tokens: int
    before: str = _PARAGRAPH
    repeatable: bool = True
    page: int = 0

    @property
    def introduces(self) -> bool:
        """Whether it announces what follows and should not part from it."""
        return self.text.endswith(":")


def is_code_entry(text: str) -> bool:
    """Whether `text` explains a code: it starts like "E20 — …" or "Ошибка E20: …"."""
    match = _ENTRY.match(text)
    return bool(match and codes(match.group()))


def pieces(blocks: Sequence[Block], *, limit: int, whole: int) -> list[Piece]:
    """The pieces of one section's blocks, none over `whole` tokens.

    :param limit: paragraphs and list items over this many tokens are cut, at sentences, then at words.
    :param whole: tables, code and code entries stay in one piece up to this many tokens.
    """
    whole_pieces: list[Piece] = []
    at = 0
    while at < len(blocks):
        end = _entry_end(blocks, at)
        entry = (
            join(_unbroken(blocks[place], _before(blocks, place)) for place in range(at, end)) if end > at + 1 else None
        )
        if entry is not None and entry.tokens <= whole:
            whole_pieces.append(entry)
            at = end
        else:
            parts = _broken(blocks[at], _before(blocks, at), limit, whole)
            whole_pieces.extend(replace(part, page=blocks[at].page) for part in parts)
            at += 1
    return whole_pieces


def join(parts: Iterable[Piece]) -> Piece:
    """Several pieces as one."""
    text, tokens, before, repeatable, page = "", 0, _PARAGRAPH, True, 0
    for part in parts:
        before = before if text else part.before
        page = page if text else part.page
        text += (part.before if text else "") + part.text
        tokens += part.tokens
        repeatable = repeatable and part.repeatable
    return Piece(text, tokens, before, repeatable, page)


def _entry_end(blocks: Sequence[Block], start: int) -> int:
    """Where the code entry that starts at `start` ends: a paragraph takes the list that follows it along."""
    end = start + 1
    if blocks[start].kind == "prose" and is_code_entry(blocks[start].text):
        while end < len(blocks) and blocks[end].kind == "item" and not is_code_entry(_body(blocks[end])):
            end += 1
    return end


def _body(block: Block) -> str:
    return block.children[0].text if block.children else block.text


def _before(blocks: Sequence[Block], at: int) -> str:
    return "\n" if at and blocks[at].kind == blocks[at - 1].kind == "item" else _PARAGRAPH


def _unbroken(block: Block, before: str) -> Piece:
    repeatable = block.kind not in {"table", "code"}
    return Piece(block.text, count_tokens(block.text), before, repeatable, block.page)


def _broken(block: Block, before: str, limit: int, whole: int) -> Iterator[Piece]:
    piece = _unbroken(block, before)
    entry = is_code_entry(_body(block))
    if piece.tokens <= (limit if piece.repeatable and not entry else whole):
        yield piece
    elif block.kind == "table":
        yield from _row_groups(block, whole)
    elif block.kind == "code":
        yield from _line_groups(block, whole)
    elif block.kind == "item" and block.children:
        yield from _item_parts(block, before, limit, whole)
    elif entry:
        yield from _entry_parts(block.text, limit)
    else:
        yield from _sentences(block.text, limit)


def _item_parts(block: Block, before: str, limit: int, whole: int) -> Iterator[Piece]:
    # The marker is a few tokens itself, so the parts have to leave room for it.
    room = count_tokens(block.head)
    marker = block.head
    for child in block.children:
        child_before = "\n" if child.kind == "item" else _PARAGRAPH
        for part in _broken(child, child_before, limit - room, whole - room):
            goes_on = part.before == " " and not before
            text = part.text if goes_on else indent(part.text, marker)
            yield Piece(text, count_tokens(text), before or part.before, part.repeatable)
            marker, before = " " * len(block.head), ""


def _sentences(text: str, limit: int) -> Iterator[Piece]:
    """The sentences of `text`, one that is over the limit cut at words."""
    before, previous_end = _PARAGRAPH, 0
    for start, end in sentence_spans(text):
        if previous_end:
            before = text[previous_end:start] or " "
        previous_end = end
        for part in _cut(text[start:end], limit):
            yield Piece(part, count_tokens(part), before)
            before = " "


def _entry_parts(text: str, limit: int) -> Iterator[Piece]:
    """A code entry that is too long for one chunk, its opening sentence repeated so that each part names the code."""
    lead = text[slice(*sentence_spans(text)[0])]
    if count_tokens(lead) > limit // 4:
        yield from _sentences(text, limit)
        return
    head, room = "", limit - count_tokens(lead)
    group: list[Piece] = []
    for sentence in _sentences(text, room):
        if sum(part.tokens for part in group) + sentence.tokens > room:
            yield _verbatim(head + join(group).text)
            head, group = f"{lead} ", []
        group.append(sentence)
    yield _verbatim(head + join(group).text)


def _cut(text: str, limit: int) -> Iterator[str]:
    """`text` cut at white space, and inside of a word only where a single one is over the limit."""
    if count_tokens(text) <= limit:
        yield text
        return
    start = end = size = 0
    for word in re.finditer(r"\S+", text):
        for part_start, part_end in _parts_of_word(word.start(), word.group(), limit):
            tokens = count_tokens(text[part_start:part_end])
            if size and size + tokens > limit:
                yield text[start:end]
                start, size = part_start, 0
            end, size = part_end, size + tokens
    if size:
        yield text[start:end]


def _parts_of_word(start: int, word: str, limit: int) -> list[tuple[int, int]]:
    # A token has at least one character, so `limit` characters are never over the limit.
    return [(start + at, start + min(at + limit, len(word))) for at in range(0, len(word), limit)]


def _row_groups(block: Block, limit: int) -> Iterator[Piece]:
    """A table between its rows, the header rows repeated."""
    rows = block.text[len(block.head) + 1 :].split("\n")
    head, room = f"{block.head}\n", limit - count_tokens(block.head)
    if room < limit // 2:
        # A header that leaves no room is not worth repeating.
        head, room, rows = "", limit, block.text.split("\n")
    for group in _groups(rows, room):
        yield _verbatim(head + group)


def _line_groups(block: Block, limit: int) -> Iterator[Piece]:
    """Code between its lines, each part fenced."""
    opening, *content, closing = block.text.split("\n")
    room = limit - count_tokens(opening) - count_tokens(closing)
    for group in _groups(content, room if room > limit // 2 else limit):
        yield _verbatim(f"{opening}\n{group}\n{closing}" if room > limit // 2 else group)


def _verbatim(text: str) -> Piece:
    return Piece(text, count_tokens(text), repeatable=False)


def _groups(lines: Sequence[str], limit: int) -> Iterator[str]:
    """Lines in groups of up to `limit` tokens; a single line over the limit is cut."""
    group: list[str] = []
    size = 0
    for line in lines:
        for part in _cut(line, limit):
            tokens = count_tokens(part)
            if group and size + tokens > limit:
                yield "\n".join(group)
                group, size = [], 0
            group.append(part)
            size += tokens
    if group:
        yield "\n".join(group)
