"""Markdown as blocks of clean, readable text: what a customer may be shown, with its structure still known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from textwrap import dedent
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from components.ingest.debris import FENCE, heading, spoken_alt, tidied
from components.ingest.safety import inert
from components.turn import Frozen
from tenants import fairness

BlockKind = Literal["heading", "prose", "item", "code", "table"]

_CROWDED = 500
"""Marks in one paragraph, of which real articles have up to 80. Reading it takes time with the square of their number
when somebody means it to, so one that no person would write is read in small pieces."""
_MARK = re.compile(r"[]\[*_<`!~\\&]")
_LOOSELY, _CLOSELY = (re.compile(rf"(?s).{{1,{size}}}(?=\s|\Z)|.{{1,{size}}}") for size in (4_000, 200))
# A closed list, because help articles write placeholders such as <name> or <source> as well.
_TAGS = (
    "a abbr article aside b big blockquote br caption center cite col colgroup dd del details dfn div dl dt em "
    "figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i iframe img ins kbd li main mark nav nobr ol p picture "
    "pre q s samp script section small span strike strong style sub summary sup svg table tbody td tfoot th thead tr "
    "tt u ul video wbr"
).split()
TAG = re.compile(rf"</?(?:{'|'.join(_TAGS)})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_IMAGE = re.compile(r"<img\b[^<>]*?\b(?:alt|title)=([\"'])((?:(?!\1)[^<>])+)\1", re.IGNORECASE)
HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
PAGE = re.compile(r"<!-- page (\d{1,6}) -->\s*")
"""What the readers of paged formats write where a page begins."""
_INLINE_MARKUP = re.compile(r"[\\`*_\[<&]| \n")
"""Without any of these a text says what it shows, its line breaks apart, which `_unwrapped` sees to."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_FEWEST_WORDS = 4
_TARGET = re.compile(r"\]\([^)\n]*\)")
_SENTENCE_ENDS = re.compile(r"[^\W_]{2,}[)»\"'`*]*[.:;!?][ \t]*$", re.MULTILINE)
_CODE_MARK = re.compile(r"[{}=$|\\#&]|\w\(|\);|--\w")
_WORDS_PER_MARK = 12
"""Words for each mark of code that prose may hold, such as the name of an option."""
_HARD_BREAK = "\v"
_LINE_END = re.compile(r"[ \t]*([\n\v])[ \t]*")
_CAPITALS = re.compile(r"^[ \t]{0,3}((?=[^\n]*[A-ZА-ЯЁ]{4})[A-ZА-ЯЁ][A-ZА-ЯЁ '’,&/()-]{3,60})[ \t]*$", re.MULTILINE)
"""A line in capitals alone, as old manuals and notes write their captions."""
BARE = re.compile(r"^[ \t]*(?:[*•·–—-]|[=_~*-]{3,}|\[/[^\]\s]+\](?:[ \t]*\[/[^\]\s]+\])*)[ \t]*$\n?", re.MULTILINE)
"""A line that holds a bullet and nothing behind it, only underlines the one above, or names where a picture lay."""
_ONE_SPACE = re.compile(r"^ (?=\S)", re.MULTILINE)
_WRAPPED_FROM = 50
"""A line at least this long that ends in mid-sentence was wrapped by an editor, not ended by its author."""


@dataclass(frozen=True, slots=True)
class Block(Frozen):
    """One block of a document.

    :param text: the block as shown; for an item with its marker and everything nested in it.
    :param level: of a heading, 1–6.
    :param head: of a table, its header rows; of code, its opening fence; of an item, its marker.
    :param children: of an item, what it holds.
    :param page: where it begins, 0 when the document has no pages.
    """

    kind: BlockKind
    text: str
    level: int = 0
    head: str = ""
    children: tuple["Block", ...] = ()
    page: int = 0


def _read_inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            fairness.yield_to_questions()
            token.children = []
            if not _INLINE_MARKUP.search(token.content):
                # Half of all texts: reading them a character at a time would take a quarter of the whole.
                token.children.append(Token("text", "", 0, content=token.content))
                continue
            crowded = len(_MARK.findall(token.content)) > _CROWDED
            for piece in (_CLOSELY if crowded else _LOOSELY).findall(token.content):
                # Into a list of its own: what is done at a piece's end is done to the whole list.
                piece_tokens: list[Token] = []
                state.md.inline.parse(piece, state.md, state.env, piece_tokens)
                token.children += piece_tokens


_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.core.ruler.at("inline", _read_inline)


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a CommonMark text with tables, in order.

    Links become their text, images within a sentence what they are called; other images, HTML comments and tags,
    emphasis marks and rulers are dropped; code is kept to the letter, its back-ticks included; quotations lose their
    marker. Other text that looks like markup, because it was
    escaped, is made inert.
    """
    return _blocks(_PARSER.parse(text))


def plain_blocks(text: str) -> tuple[Block, ...]:
    """The paragraphs of a text without markup, and its captions, lines in capitals, each by itself.

    Lines that say nothing are left out. What would be markup elsewhere is made inert.
    """
    text = _CAPITALS.sub(r"\n\n\1\n\n", _ONE_SPACE.sub("", BARE.sub("", inert(text))))
    paragraphs = (part.strip("\n") for part in re.split(r"\n(?:[ \t]*\n)+", text))
    return tuple(Block("prose", part) for part in paragraphs if part.strip())


def _blocks(tokens: Sequence[Token]) -> tuple[Block, ...]:
    all_blocks: list[Block] = []
    at = page = 0
    while at < len(tokens):
        token = tokens[at]
        end = _closing(tokens, at) if token.nesting == 1 else at
        if token.type == "html_block" and (mark := PAGE.fullmatch(token.content)):
            page = int(mark[1])
        blocks = (block for block in _block(token, tokens[at + 1 : end]) if block.text)
        all_blocks.extend((replace(block, page=page) for block in blocks) if page else blocks)
        at = end + 1
    return tuple(all_blocks)


def _block(token: Token, inner: Sequence[Token]) -> Sequence[Block]:
    """The blocks that one token and those inside of it stand for."""
    match token.type:
        case "heading_open":
            return [Block("heading", heading(_inline(inner[0]).replace("\n", " ")), level=int(token.tag[1]))]
        case "paragraph_open":
            return [Block("prose", _inline(inner[0]))]
        case "bullet_list_open" | "ordered_list_open":
            return _items(token, inner)
        case "blockquote_open":
            return _blocks(inner)
        case "code_block" if _is_prose(token.content):
            return _blocks(_indented_prose(token.content))
        case "fence" | "code_block":
            return [_code(token)]
        case "table_open":
            return [_table(inner)]
        case "html_block":
            return [Block("prose", _html(token.content))]
    return []


def _closing(tokens: Sequence[Token], opening: int) -> int:
    level = tokens[opening].level
    return next(at for at in range(opening + 1, len(tokens)) if tokens[at].level == level and tokens[at].nesting == -1)


def _items(opening: Token, tokens: Sequence[Token]) -> list[Block]:
    items: list[Block] = []
    number = int(opening.attrGet("start") or 1) if opening.type == "ordered_list_open" else None
    at = 0
    while at < len(tokens):
        end = _closing(tokens, at)
        marker = "- " if number is None else f"{number}{tokens[at].markup} "
        items.append(_item(marker, _blocks(tokens[at + 1 : end])))
        number = None if number is None else number + 1
        at = end + 1
    return items


def _item(marker: str, children: tuple[Block, ...]) -> Block:
    # A heading inside a list opens no section; it stays a line of its item.
    children = tuple(Block("prose", child.text) if child.kind == "heading" else child for child in children)
    text = ""
    for child in children:
        separator = "" if not text else "\n" if child.kind == "item" else "\n\n"
        text += separator + child.text
    return Block("item", indent(text, marker), head=marker, children=children) if text else Block("item", "")


def indent(text: str, marker: str) -> str:
    """`text` as the body of a list item: the marker before its first line, spaces of that width before the others."""
    first, *following = text.split("\n")
    pad = " " * len(marker)
    return "\n".join([marker + first, *(pad + line if line else line for line in following)])


def _is_prose(indented: str) -> bool:
    """Whether text that is indented as code is none: authors indent what stands under a step or a tab too far, code
    with its own fence included.
    """
    if FENCE.search(indented):
        return True
    words_in_it = len(_WORD.findall(indented))
    few_marks = len(_CODE_MARK.findall(_TARGET.sub("", indented))) * _WORDS_PER_MARK <= words_in_it
    return words_in_it >= _FEWEST_WORDS and few_marks and _SENTENCE_ENDS.search(indented) is not None


def _indented_prose(text: str) -> list[Token]:
    tokens = _PARSER.parse(dedent(text))
    for token in tokens:
        if token.type == "code_block":
            # What is indented within it is taken for code, so that no text nests without end.
            token.type = "fence"
    return tokens


def _code(token: Token) -> Block:
    content = token.content.strip("\n")
    fence = "```" if "```" not in content else token.markup or "~~~"
    opening = fence + (token.info.split() or [""])[0]
    return Block("code", f"{opening}\n{content}\n{fence}" if content.strip() else "", head=opening)


def _table(tokens: Sequence[Token]) -> Block:
    rows: list[list[str]] = []
    header_rows = 0
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "thead_close":
            header_rows = len(rows)
        elif token.type == "inline":
            rows[-1].append(re.sub(r"\s+", " ", _inline(token)).replace("|", "\\|"))
    if not any(cell for row in rows for cell in row):
        return Block("table", "")
    lines = [f"| {' | '.join(row)} |" for row in rows]
    head = "\n".join([*lines[:header_rows], f"|{' --- |' * len(rows[0])}"])
    return Block("table", "\n".join([head, *lines[header_rows:]]), head=head)


def _inline(token: Token) -> str:
    if token.children and len(token.children) == 1 and token.children[0].type == "text":
        return tidied(_unwrapped(inert(token.children[0].content)))
    visible_parts: list[str] = []
    # A picture that stands alone is a screenshot, one in a sentence an icon.
    alone = not any(part.type in ("text", "code_inline") and part.content.strip() for part in token.children or ())
    visible = partial(_visible, alone=alone)
    for code, parts in groupby(token.children or (), lambda part: part.type == "code_inline"):
        if code:
            visible_parts.extend(_code_span(part) for part in parts)
        else:
            visible_parts.append(tidied(inert("".join(map(visible, parts)))))
    return _unwrapped("".join(visible_parts))


def _code_span(part: Token) -> str:
    pad = " " if part.content.startswith("`") or part.content.endswith("`") else ""
    return f"{part.markup}{pad}{part.content}{pad}{part.markup}"


def _visible(part: Token, *, alone: bool) -> str:
    if part.type == "text":
        return part.content
    if part.type == "image":
        return "" if alone else spoken_alt(part.content) or spoken_alt(str(part.attrGet("title") or ""))
    if part.type == "html_inline":
        if not alone and (image := _IMAGE.match(part.content)):
            return spoken_alt(image[2])
        return TAG.sub("", _BREAK.sub(_HARD_BREAK, HIDDEN.sub("", part.content)))
    return {"softbreak": "\n", "hardbreak": _HARD_BREAK}.get(part.type, "")


def _html(content: str) -> str:
    visible = TAG.sub("", _BREAK.sub("\n", HIDDEN.sub("", content))).strip()
    if not visible:
        return ""
    return "\n\n".join(
        _inline(_PARSER.parseInline(part.strip())[0]) for part in re.split(r"\n\s*\n", visible) if part.strip()
    )


def _unwrapped(text: str) -> str:
    """Lines wrapped in mid-sentence joined again; lines that an author ended on purpose stay lines."""
    text = text.strip(" \t\n\v")
    if "\n" not in text and _HARD_BREAK not in text:
        return text
    pieces = _LINE_END.split(text)
    joined = pieces[0]
    for at in range(1, len(pieces), 2):
        mark, line = pieces[at], pieces[at + 1]
        last = joined[joined.rfind("\n") + 1 :]
        if not line or not joined:
            joined += line
        elif mark == "\n" and (line[0].islower() or (len(last) >= _WRAPPED_FROM and last[-1] not in ".!?…:;")):
            joined += f" {line}"
        else:
            # Without a full stop before it only a blank line keeps the next line from becoming the same sentence.
            joined += ("\n" if not last or last[-1] in ".!?…:;" else "\n\n") + line
    return joined
