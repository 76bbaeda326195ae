"""Markdown and plain text as blocks of clean, readable text that keep their structure."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from components.ingest.safety import inert
from components.turn import Frozen
from tenants.core import fairness

BlockKind = Literal["heading", "prose", "item", "code", "table"]

_CROWDED = 500
"""Marks in one paragraph; real articles have up to 80. The parser takes quadratic time over them, so a paragraph with
more is parsed in small pieces."""
_MARK = re.compile(r"[]\[*_<`!~\\&]")
_LOOSELY, _CLOSELY = (re.compile(rf"(?s).{{1,{size}}}(?=\s|\Z)|.{{1,{size}}}") for size in (4_000, 200))
# A closed list, because help articles write placeholders such as <name>, <source> or <table name> as well: an attribute
# without a value must be one of HTML's.
_TAGS = (
    "a abbr article aside b big blockquote br caption center cite col colgroup dd del details dfn div dl dt em "
    "figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i iframe img ins kbd li main mark nav nobr ol p picture "
    "pre q s samp script section small span strike strong style sub summary sup svg table tbody td tfoot th thead tr "
    "tt u ul video wbr"
).split()
_FLAGS = "allowfullscreen|autoplay|border|controls|hidden|loop|muted|nowrap|open|reversed"
# No part of a tag can end in two places: otherwise, 20 kB of equals signs take a minute.
_TAG = re.compile(
    rf"</?(?:{'|'.join(_TAGS)})(?:\s[^<>=]*+=[^<>]*+|(?:\s++(?:{_FLAGS}))*+\s*+/?)>",
    re.IGNORECASE,
)
_PAIRED = re.compile(
    r"<(/?)(address|button|code|data|fieldset|form|label|object|option|output|select|time|title|var)(?:\s[^<>]*+)?>",
    re.IGNORECASE,
)
"""Elements whose names are placeholders as well, so they are markup only if the same paragraph closes them."""
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_PAGE = re.compile(r"<!-- page (\d{1,6}) -->\s*")
"""Mark that readers of paged formats write at the beginning of a page."""
_ANCHOR = re.compile(r"(?:(?<![ \t])[ \t]++)?+\{#[\w-]++\}[ \t]*+$", re.MULTILINE)
"""The id of a heading, as Docusaurus, Hugo and Pandoc write it."""
_BREAK = re.compile(r"</?(?:br|dd|div|dt|h[1-6]|li|ol|p|tr|ul)(?:\s[^<>=]*+=[^<>]*+|\s*+)/?>", re.IGNORECASE)
"""Tags at which a browser begins a new line."""
_PREFORMATTED = re.compile(r"\s*<pre\b[^<>]*>(.*)</pre>\s*", re.IGNORECASE | re.DOTALL)
_IMAGE = re.compile(r"<img\b", re.IGNORECASE)
_IMAGE_NAMES = re.compile(r"\s(alt|title)=([\"'])((?:(?!\2)[^<>])+)\2", re.IGNORECASE)
_FILE_NAME = re.compile(r"\S+\.\w{2,4}")
_CLASS = re.compile(r"[a-z][a-z_-]*")
"""`inline` and the like, which some generators write as the title of an image."""
_MISSING = "\ue001"
"""Marks the place of an image without a name until its sentence is complete."""
_GAP = re.compile(rf"[ ]*{_MISSING}[ ]*(?=[.,;:!?)])|{_MISSING}")
_INLINE_MARKUP = re.compile(r"[\\`*_\[<&]| \n")
"""Without any of these the parser would change nothing but line breaks, which `_unwrapped` handles."""
_HARD_BREAK = "\v"
_SENTENCE_ENDS = frozenset(("", "\n", _HARD_BREAK, *".!?…:;"))
_SPACES = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Extra spaces left by a removed image or tag."""
_LINE_END = re.compile(r"[ \t]*([\n\v])[ \t]*")
_WRAPPED_FROM = 50
"""A line at least this long that ends in mid-sentence was wrapped by an editor, not ended by its author."""


@dataclass(frozen=True, slots=True)
class Block(Frozen):
    """A Markdown block of a document.

    :param text: the block as shown; for an item with its marker and everything nested in it.
    :param level: of a heading, 1–6.
    :param head: of a table, its header rows; of code, its opening fence; of an item, its marker.
    :param children: the blocks inside an item.
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
                # This covers half of all texts, for which the parser would take a quarter of the time.
                token.children.append(Token("text", "", 0, content=token.content))
                continue
            crowded = len(_MARK.findall(token.content)) > _CROWDED
            for piece in (_CLOSELY if crowded else _LOOSELY).findall(token.content):
                # A separate list, because the rules that run at the end of a piece look at the whole list.
                piece_tokens: list[Token] = []
                state.md.inline.parse(piece, state.md, state.env, piece_tokens)
                token.children += piece_tokens


def _read_table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    if silent or not table(state, first, end, True):
        return table(state, first, end, silent)
    return table(state, first, _table_end(state, first, end), False)


def _table_end(state: StateBlock, first: int, end: int) -> int:
    """Return the line at which a table ends at the latest: it has no more missing cells than characters.

    The parser adds the cells that rows lack. Lines of one letter below 200 columns would become 200 cells each.
    """
    columns = state.getLines(first + 1, first + 2, 0, False).strip().strip("|").count("|") + 1
    characters = missing = 0
    for line in range(first, end):
        row = state.getLines(line, line + 1, 0, False).strip()
        characters += len(row)
        missing += max(0, columns - row.count("|") - 1)
        if not row or missing > characters:
            return line
    return end


# Of 760 indented blocks in five help centres, 740 were text that an author had indented too far under a step or a tab.
_PARSER = MarkdownIt("commonmark").enable("table").disable("code")
_PARSER.core.ruler.at("inline", _read_inline)
_PARSER.block.ruler.at("table", _read_table, {"alt": ["paragraph", "reference"]})


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of a CommonMark text with tables, in order.

    Links become their text, and images within a sentence their alternative text. Other images, comments, tags,
    emphasis and rulers are dropped. Fenced code stays unchanged. Escaped markup is made inert.
    """
    return _blocks(_PARSER.parse(text))


def plain_blocks(text: str) -> tuple[Block, ...]:
    """Return the paragraphs of a text without markup, made inert."""
    paragraphs = (part.strip("\n") for part in re.split(r"\n(?:[ \t]*\n)+", inert(text)))
    return tuple(Block("prose", part) for part in paragraphs if part.strip())


def _blocks(tokens: Sequence[Token]) -> tuple[Block, ...]:
    all_blocks: list[Block] = []
    steps = _Steps()
    at = page = 0
    while at < len(tokens):
        token = tokens[at]
        end = _closing(tokens, at) if token.nesting == 1 else at
        if token.type == "html_block" and (mark := _PAGE.fullmatch(token.content)):
            page = int(mark[1])
        if token.type == "ordered_list_open":
            steps.resume(token)
        blocks = [block for block in _block(token, tokens[at + 1 : end]) if block.text or block.kind == "heading"]
        steps.follow(token, blocks)
        all_blocks.extend((replace(block, page=page) for block in blocks) if page else blocks)
        at = end + 1
    return tuple(all_blocks)


class _Steps:
    """The numbering of a procedure that code, a table or an image interrupts.

    In Markdown a list that follows starts at 1 again, unless its number was written down. A paragraph in between is
    taken for a caption of the code; with more of them, such as the name of a tab, another procedure begins.
    """

    def __init__(self) -> None:
        self._end(0)

    def resume(self, opening: Token) -> None:
        """Let a list that starts at 1 go on where the last one ended, if it is the same procedure."""
        same = self._last and not self._after_prose and self._captions <= self._exhibits
        if same and int(opening.attrGet("start") or 1) == 1:
            opening.attrSet("start", str(self._last + 1))

    def follow(self, token: Token, blocks: Sequence[Block]) -> None:
        """Take note of the blocks of a token."""
        if token.type == "ordered_list_open" and blocks:
            self._end(int(blocks[-1].head.strip(" .)")))
        elif token.type in {"heading_open", "bullet_list_open"}:
            self._end(0)
        elif blocks:
            exhibit = blocks[-1].kind in {"code", "table"} or token.type == "blockquote_open"
            self._captions += not exhibit
            self._exhibits += exhibit
            self._after_prose = not exhibit

    def _end(self, last: int) -> None:
        self._last = last
        self._captions = self._exhibits = 0
        self._after_prose = False


def _block(token: Token, inner: Sequence[Token]) -> Sequence[Block]:
    match token.type:
        case "heading_open":
            return [Block("heading", _ANCHOR.sub("", _inline(inner[0]).replace("\n", " ")), level=int(token.tag[1]))]
        case "paragraph_open":
            return [Block("prose", _inline(inner[0]))]
        case "bullet_list_open" | "ordered_list_open":
            return _items(token, inner)
        case "blockquote_open":
            return _blocks(inner)
        case "fence":
            return [_fenced(token.content, token.markup, (token.info.split() or [""])[0])]
        case "table_open":
            return [_table(inner)]
        case "html_block" if code := _PREFORMATTED.fullmatch(token.content):
            return [_fenced(unescape(_without_tags(_BREAK.sub("\n", code[1]))))]
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
    children = tuple(
        Block("prose", child.text) if child.kind == "heading" else child for child in children if child.text
    )
    text = ""
    for child in children:
        separator = "" if not text else "\n" if child.kind == "item" else "\n\n"
        text += separator + child.text
    return Block("item", indent(text, marker), head=marker, children=children) if text else Block("item", "")


def indent(text: str, marker: str) -> str:
    """Return `text` as the body of a list item: its marker before the first line, as many spaces before others."""
    first, *following = text.split("\n")
    pad = " " * len(marker)
    return "\n".join([marker + first, *(pad + line if line else line for line in following)])


def _fenced(content: str, markup: str = "~~~~", language: str = "") -> Block:
    content = content.strip("\n")
    fence = "```" if "```" not in content else markup
    opening = fence + language
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
    text = shown = ""
    parts = token.children or ()
    paired = _paired("".join(part.content for part in parts if part.type == "html_inline"))
    for part in parts:
        if part.type == "code_inline":
            pad = " " if part.content.startswith("`") or part.content.endswith("`") else ""
            text += _SPACES.sub(" ", inert(shown)) + f"{part.markup}{pad}{part.content}{pad}{part.markup}"
            shown = ""
        elif part.type == "image" or (part.type == "html_inline" and _IMAGE.match(part.content)):
            # An image between sentences or alone is a screenshot, one within a sentence an icon.
            within = (text + shown).rstrip(f" {_MISSING}")[-1:] not in _SENTENCE_ENDS
            shown += (_image_name(part) or _MISSING) if within else ""
        else:
            shown += _visible(part, paired)
    text += _SPACES.sub(" ", inert(shown))
    return _unwrapped(_SPACES.sub(" ", _GAP.sub("", text)) if _MISSING in text else text)


def _visible(part: Token, paired: Container[str]) -> str:
    if part.type == "text":
        return part.content
    if part.type == "html_inline":
        return _without_tags(_BREAK.sub(_HARD_BREAK, _HIDDEN.sub("", part.content)), paired)
    return {"softbreak": "\n", "hardbreak": _HARD_BREAK}.get(part.type, "")


def _image_name(image: Token) -> str:
    """Return the alternative text of an image, or its title; empty where neither names it."""
    if image.type == "image":
        names = {"alt": image.content, "title": str(image.attrGet("title") or "")}
    else:
        names = {match[1].lower(): unescape(match[3]) for match in _IMAGE_NAMES.finditer(image.content)}
    alt, title = (" ".join(names.get(name, "").split()) for name in ("alt", "title"))
    name = alt or ("" if _CLASS.fullmatch(title) else title)
    return "" if _FILE_NAME.fullmatch(name) else name


def _paired(html: str) -> set[str]:
    """Return the elements of `_PAIRED` that are opened as well as closed."""
    tags = {(match[1], match[2].lower()) for match in _PAIRED.finditer(html)}
    return {name for slash, name in tags if slash and ("", name) in tags}


def _without_tags(html: str, paired: Container[str] | None = None) -> str:
    known = _paired(html) if paired is None else paired
    return _TAG.sub("", _PAIRED.sub(lambda match: "" if match[2].lower() in known else match[0], html))


def _html(content: str) -> str:
    visible = _without_tags(_BREAK.sub("\n", _HIDDEN.sub("", content))).strip()
    parts = (part.strip() for part in re.split(r"\n\s*\n", visible))
    return "\n\n".join(_inline(_PARSER.parseInline(part)[0]) for part in parts if part)


def _unwrapped(text: str) -> str:
    """Join lines that were wrapped in mid-sentence; keep lines that an author ended on purpose."""
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
