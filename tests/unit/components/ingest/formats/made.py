"""Small office files for tests, as written by office programs."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO

import docx
import font_roboto
from docx.document import Document
from openpyxl import Workbook
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

REGULAR, BOLD = "Roboto", "RobotoBold"
WIDTH, HEIGHT = A4
for _name in (REGULAR, BOLD):
    pdfmetrics.registerFont(TTFont(_name, font_roboto.font_files[_name]))


def pdf(*pages: Callable[[Canvas], None], title: str = "", password: str = "") -> bytes:
    """Build a PDF file of A4 pages, each drawn by a function; `write` puts text on one."""
    saved = BytesIO()
    canvas = Canvas(saved, pagesize=A4, encrypt=password or None)
    canvas.setTitle(title or "untitled")
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return saved.getvalue()


def write(canvas: Canvas, text: str, x: float, top: float, size: float = 11, font: str = REGULAR) -> None:
    """Draw a line of text, `top` points below the top of the page."""
    canvas.setFont(font, size)
    canvas.drawString(x, HEIGHT - top, text)


def lines(*texts: str, top: float = 200, step: float = 14) -> Callable[[Canvas], None]:
    """Return a page with lines of plain text."""

    def draw(canvas: Canvas) -> None:
        for at, text in enumerate(texts):
            write(canvas, text, 72, top + at * step)

    return draw


def word(build: Callable[[Document], None], title: str = "") -> bytes:
    """Build a DOCX file."""
    document = docx.Document()
    document.core_properties.title = title
    document.core_properties.author = "Анна Петрова"
    document.core_properties.modified = datetime(2025, 3, 4, 12, tzinfo=UTC)
    build(document)
    saved = BytesIO()
    document.save(saved)
    return saved.getvalue()


def workbook(*sheets: Sequence[Sequence[object]]) -> Workbook:
    """Build an Excel workbook with a sheet for each list of rows."""
    book = Workbook()
    book.remove(book.worksheets[0])
    for at, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"Тарифы {at}")
        for row in rows:
            sheet.append(list(row))
    return book


def saved(book: Workbook) -> bytes:
    """Return the bytes of a workbook."""
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()
