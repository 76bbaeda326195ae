"""Markdown articles as the files that companies have instead: Word, PDF and web pages, written as an office would.

Needs the development dependencies; only benchmarks and tests import it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import escape
from io import BytesIO
from typing import TypeAlias

import docx
import font_roboto
from docx.document import Document
from markdown_it import MarkdownIt
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, Preformatted, SimpleDocTemplate, Spacer, Table, TableStyle

from components.ingest.document import SourceDocument
from components.ingest.markdown import Block, markdown_blocks

Renderer: TypeAlias = Callable[[SourceDocument], bytes]

_CELLS = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"[`~]{3,}")
_SIZES = {0: 10.5, 1: 18, 2: 15, 3: 13, 4: 12, 5: 11.5, 6: 11.5}
_LONGEST_LINE = 90
_WIDTH = 470
_PAGE = """<!DOCTYPE html>
<html lang="ru"><head><meta charset="utf-8"><title>{title} | Help centre</title><style>p {{ margin: 0 }}</style></head>
<body><header><a href="/">Help centre</a></header><nav><ul><li><a href="/a">Articles</a></li></ul></nav>
<main><h1>{title}</h1>{body}</main><footer>© Help centre</footer><script>console.log("ready")</script></body></html>
"""


def as_html(document: SourceDocument) -> bytes:
    """Render a help-centre page with navigation around the article."""
    body = MarkdownIt("commonmark").enable("table").render(document.text)
    return _PAGE.format(title=escape(document.title), body=body).encode()


def as_docx(document: SourceDocument) -> bytes:
    """Render a Word file with Word's own styles."""
    file = docx.Document()
    file.core_properties.title = document.title
    file.add_heading(_legal(document.title), 1)
    for block in markdown_blocks(document.text):
        _add(file, block, depth=1)
    saved = BytesIO()
    file.save(saved)
    return saved.getvalue()


def _add(file: Document, block: Block, depth: int) -> None:
    text = _legal(block.text)
    if block.kind == "heading":
        file.add_heading(text, block.level)
    elif block.kind == "table":
        rows = _rows(text)
        table = file.add_table(len(rows), max(map(len, rows)), "Table Grid")
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, words in zip(row.cells, cells, strict=False):
                cell.text = words
    elif block.kind == "item":
        style = "List Number" if block.head[0].isdigit() else "List Bullet"
        for at, child in enumerate(block.children):
            if child.kind in {"item", "table"}:
                _add(file, child, min(depth + 1, 3))
            else:
                name = f"{style} {depth}" if depth > 1 else style
                file.add_paragraph(_legal(_plain(child)), name if at == 0 else "List Continue")
    else:
        file.add_paragraph(_plain(block) if block.kind == "code" else text)


def as_pdf(document: SourceDocument) -> bytes:
    """Render a PDF file in one column on A4, with ruled tables and a page number at the foot of each page."""
    saved = BytesIO()
    template = SimpleDocTemplate(saved, title=document.title, leftMargin=60, rightMargin=60)
    flow: list[Flowable] = [Paragraph(escape(document.title), _style(1))]
    for block in markdown_blocks(document.text):
        flow.extend(_flowables(block, 0))
    template.build(flow, onFirstPage=_number, onLaterPages=_number)
    return saved.getvalue()


def _flowables(block: Block, indent: int) -> Iterator[Flowable]:
    text = _legal(block.text)
    if block.kind == "heading":
        yield Paragraph(escape(text), _style(block.level))
    elif block.kind == "table":
        style = _style(0)
        rows = [[Paragraph(escape(cell), style) for cell in row] for row in _rows(text)]
        width = max(map(len, rows))
        # A row that is higher than a page cannot be set as a row.
        if max(len(cell) for row in _rows(text) for cell in row) > 250 * 8 / width:
            yield from (cell for row in rows for cell in row)
            return
        filled = [[*row, *[""] * (width - len(row))] for row in rows]
        ruled = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
        yield Table(filled, [_WIDTH / width] * width, repeatRows=1, style=ruled)
        yield Spacer(1, 6)
    elif block.kind == "item":
        marker = "•" if block.head.startswith("-") else block.head.strip()
        for at, child in enumerate(block.children):
            if child.kind in {"item", "table"}:
                yield from _flowables(child, indent + 1)
            else:
                lead = f"{marker} " if at == 0 else ""
                yield Paragraph(escape(lead + _legal(_plain(child))).replace("\n", "<br/>"), _style(0, indent + 1))
    elif block.kind == "code":
        lines = _legal(_plain(block)).split("\n")
        broken = [line[at : at + _LONGEST_LINE] for line in lines for at in range(0, max(1, len(line)), _LONGEST_LINE)]
        yield Preformatted("\n".join(broken), _style(0, indent))
    else:
        yield Paragraph(escape(text).replace("\n", "<br/>"), _style(0, indent))


@cache
def _style(level: int, indent: int = 0) -> ParagraphStyle:
    """Return the style of text, or of a heading of a level."""
    for name in ("Roboto-Regular", "Roboto-Bold"):
        if name not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(TTFont(name, font_roboto.font_files[name.replace("-Regular", "").replace("-", "")]))
    size = _SIZES[level]
    font = "Roboto-Bold" if level else "Roboto-Regular"
    return ParagraphStyle(
        f"{level} {indent}",
        fontName=font,
        fontSize=size,
        leading=size * 1.25,
        spaceAfter=size * 0.6,
        leftIndent=16 * indent,
        # A code or address wider than its column is broken rather than set over its neighbours.
        splitLongWords=1,
    )


def _number(canvas: Canvas, template: SimpleDocTemplate) -> None:
    canvas.setFont("Roboto-Regular", 9)
    canvas.drawCentredString(template.pagesize[0] / 2, 30, str(canvas.getPageNumber()))


def _plain(block: Block) -> str:
    """Return the text of a block without code marks."""
    if block.kind != "code":
        return block.text
    return "\n".join(line for line in block.text.split("\n") if not _FENCE.match(line))


def _rows(table: str) -> list[list[str]]:
    lines = [line for line in table.split("\n") if not re.fullmatch(r"[|\s:-]+", line)]
    return [[cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip()[1:-1])] for line in lines]


def _legal(text: str) -> str:
    """Remove the characters that no office file can hold."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]", "", text)


RENDERERS: Mapping[str, Renderer] = {"html": as_html, "docx": as_docx, "pdf": as_pdf}
"""By the ending of what they write."""
