"""What vendors' editors and exports leave in a text: names of icons that are lost, anchors, macros, glued words.

None of it is said to a customer, and much of it can be put right: a table of AsciiDoc can be read as one, a step whose
icon is lost can say that there was one.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from textwrap import dedent

ANCHOR = re.compile(r"[ \t]?\{(?:#[\w-]+|:[^{}\n]*|\.[a-z][\w .=-]*)\}")
MACRO = re.compile(r"\{%[^%\n]*%\}|\{\{[^{}\n]*\}\}")
_LOST_REFERENCE = re.compile(r"[ ]*\([^()\n]*%(?:text|number)\b[^()\n]*\)")
"""An aside that points to a figure or a section whose number an export has lost."""
_NUMBERING = re.compile(r"\A(?:\.+\s+)+")
_PRESSED = (
    r"(?:на)?жм(?:и|ите|ём|ем|ет|ут)|нажать|нажав|кликн\w+|щелкн\w+|щёлкн\w+|выбер\w+|click|tap|press|select|hover over"
)
# Two spaces, or one before a full stop or a comma, where an icon stood.
_LOST_ICON = re.compile(rf"\b({_PRESSED})((?:[ ]на|[ ]on)?)(?:[ ]{{2,}}(?=[a-zа-яё(])|[ ]+(?=[.,;]))", re.IGNORECASE)
_NAMED_ICON = re.compile(r"\b(знач\w+|икон\w+|кнопк\w+|пиктограмм\w+|icon|button)[ ]+(?=[.,;:)])", re.IGNORECASE)
_SPACES = re.compile(r"(?<=\S)[ ]{2,}(?=\S)")
_EMPTY = re.compile(r"[ ]?(?:\([ ]*\)|\[[ ]*\]|«[ ]*»)(?=[ .,;:]|\Z)")
_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)

_ALT = 40
_FILE = re.compile(r"\.\w{2,4}\Z|[_/]|^(?:image|img|screenshot|picture|скриншот|рисунок|изображение)\b", re.IGNORECASE)

_TABLE = re.compile(
    r"^([ \t]{0,20})(?:\[([^\]\n]*cols[^\]\n]*)\]\n[ \t]{0,20})?\|===\n(.*?)^[ \t]{0,20}\|===$",
    re.MULTILINE | re.DOTALL,
)
_COLUMNS = re.compile(r'cols="?([^"\]]*)"?')
_CELL = re.compile(r"(?:^|(?<=[ ]))(?:(\d{1,3})\+)?[.\w^<>]{0,3}\|", re.MULTILINE)
_MAX_COLUMNS = 100

_GLUED = re.compile(r"(?<![\w.@/\\`-])([^\W\d_]+?[a-zа-яё])([A-ZА-ЯЁ][a-zа-яё]+)(?![\w@/]|\.\w)")
_STOPPED = re.compile(
    r"(?<=[a-zа-яё)])([.!?:])(?=[A-ZА-ЯЁ][a-zа-яё]*(?:['’][a-zа-яё]+)?[ :]|(?<!:)[A-ZА-ЯЁ][a-zа-яё]+[A-ZА-ЯЁ])"
)
_BRACKETED = re.compile(
    r"(?<=[a-zа-яё]\))(?=[A-ZА-ЯЁ][a-zа-яё]+[ '’])|(?<=[a-zа-яё)][.!?])(?=(?:Note|Tip|Important|Примечание|Важно)s?:)"
)
_LABELLED = re.compile(r"\b(Note|Tip|Important|Warning|Примечание|Совет|Важно|Внимание)(s?):(?=[A-ZА-ЯЁ])")
"""What opens a remark, which goes on in the same line."""
_LOWER_BEFORE = re.compile(r"(?:^|[\s(])[a-zа-яё]+\Z")
_WORD = re.compile(r"[^\W\d_]+")
_OPENERS = frozenset(
    "A An By Click For From Go Here How If In It Learn Note Once Open Select The There These This Tip To We What When "
    "With You Your В Вы Для Если Как На Нажмите Откройте По При Чтобы Это".split()
)
_MIN_BREAKS, _MIN_WITH_STOPS = 3, 2
"""Places from which on a text is one that lost its line breaks; fewer will do where sentences are among them."""
FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def tidied(text: str) -> str:
    """A line of prose without anchors, macros and gaps; where an icon is lost, a word says so."""
    if "{" in text:
        text = MACRO.sub("", ANCHOR.sub("", text))
    if "%" in text:
        text = _LOST_REFERENCE.sub("", text)
    if "  " in text or " ," in text or " ." in text or " ;" in text or " )" in text:
        text = _NAMED_ICON.sub(r"\1", text)
        text = _LOST_ICON.sub(_icon, text)
        text = _SPACES.sub(" ", text)
    return _EMPTY.sub("", text) if "(" in text or "[" in text or "«" in text else text


def _icon(match: re.Match[str]) -> str:
    """What is pressed, with a word for the icon that is lost: "нажмите на значок", "click the icon"."""
    verb, preposition = match[1], match[2]
    if _CYRILLIC.search(verb):
        word = " значок" if preposition or verb.lower().startswith("выбер") else " на значок"
    else:
        word = " the icon"
    after = match.string[match.end() : match.end() + 1]
    return f"{verb}{preposition}{word}{'' if after in '.,;' else ' '}"


def heading(text: str) -> str:
    """A heading without the dots of a numbering that is lost."""
    return _NUMBERING.sub("", text)


def spoken_alt(alt: str) -> str:
    """The text in place of a picture that stands in a sentence: the name of an icon; empty for a file's name."""
    alt = " ".join(alt.split())
    return alt if 0 < len(alt) <= _ALT and not _FILE.search(alt) else ""


def with_tables(text: str) -> str:
    """The tables of AsciiDoc in a Markdown text as tables of Markdown."""
    return _TABLE.sub(_table, text) if "|===" in text else text


def _table(match: re.Match[str]) -> str:
    indent, declared, content = match[1], match[2] or "", dedent(match[3])
    cells = list(_cells(content))
    width = _width(declared, content)
    if not cells or not 1 <= width <= _MAX_COLUMNS:
        return match.group()
    rows: list[list[str]] = [[]]
    for span, cell in cells:
        if len(rows[-1]) + 1 > width:
            rows.append([])
        rows[-1] += [cell, *[""] * (min(span, width - len(rows[-1])) - 1)]
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    table = "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])
    return f"\n{textwrap.indent(table, indent)}\n"


def _cells(content: str) -> Iterator[tuple[int, str]]:
    starts = list(_CELL.finditer(content))
    ends = (*(match.start() for match in starts[1:]), len(content))
    for match, end in zip(starts, ends, strict=False):
        yield int(match[1] or 1), " ".join(content[match.end() : end].split())


def _width(declared: str, content: str) -> int:
    """The number of columns: as declared, else as many cells as the first line has."""
    if columns := _COLUMNS.search(declared):
        named = columns[1].strip()
        repeated = re.match(r"(\d+)\*", named)
        return int(repeated[1]) if repeated else named.count(",") + 1
    first = next((line for line in content.split("\n") if line.strip()), "")
    return len(_CELL.findall(first))


def unglued(text: str) -> str:
    """The text with a line break where an export has left one out between blocks ("your siteGo to Settings").

    Two words are taken apart only if they occur in the text by themselves as well and their compound once, or if the
    second one opens sentences. A text with few such places, or with code, stays as it is: names are written like that.
    """
    if FENCE.search(text):
        return text
    word_counts = Counter(_WORD.findall(text))
    folded = {word.casefold() for word in word_counts}

    def glued(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        once = second.casefold() in folded and word_counts[first + second] == 1
        apart = first.casefold() in folded and (once or second in _OPENERS)
        return f"{first}\n\n{second}" if apart else match.group()

    def stopped(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 40) : match.start()]
        return f"{match[1]}\n\n" if _LOWER_BEFORE.search(before) else match.group()

    unjoined = _GLUED.sub(glued, text)
    separated = _BRACKETED.sub("\n\n", _STOPPED.sub(stopped, unjoined))
    least = _MIN_WITH_STOPS if separated != unjoined else _MIN_BREAKS
    if separated.count("\n\n") - text.count("\n\n") < least:
        return text
    return _LABELLED.sub(r"\1\2: ", separated)
