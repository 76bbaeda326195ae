"""One page of a PDF as pdfium sees it: its words in the order of the file, each with its place and its looks."""

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from components.ingest.formats.pdf_drawings import Drawings, Frame, drawings
from components.turn import Frozen

_LETTERS_OF_TEXT = 5
"""Fewer on a page that is covered by a picture are a stamp or a number on a scan."""
_MIN_FONT_SIZE = 2.0
"""Points. Nobody can read smaller letters."""
_WHITE = 250
_BOLD = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)
_BOLD_WEIGHT = 600
_MAX_NAME_LENGTH = 256
HYPHEN = "\u00ad"
"""The end of a line at which a word was parted."""
_HYPHENS = {0x02: HYPHEN, 0xFFFE: HYPHEN}
"""What pdfium makes of it. The other half of the word follows without a space."""


@dataclass(frozen=True, slots=True)
class Word(Frozen):
    """Characters without a space between them.

    :param x0: left, `x1` right, `y0` bottom, `y1` top, in points from the lower left corner of the page as it is read.
    :param bold: whether its font is.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    bold: bool

    @property
    def size(self) -> float:
        """The height of its line of type: a little more than the size of its font."""
        return self.y1 - self.y0


@dataclass(frozen=True, slots=True)
class Page(Frozen):
    """One page.

    :param number: from 1.
    :param words: what can be seen, in the order in which the file draws it.
    :param scanned: it is a picture without text.
    :param hidden: it has text that cannot be seen, which is not among the words.
    """

    number: int
    height: float
    words: tuple[Word, ...]
    drawings: Drawings
    scanned: bool
    hidden: bool


@dataclass(frozen=True, slots=True)
class _Style(Frozen):
    invisible: bool
    white: bool
    bold: bool


def read_page(document: pdfium.PdfDocument, at: int) -> Page:
    """The page at an index. Raises `pypdfium2.PdfiumError` when it cannot be loaded."""
    page = document[at]
    try:
        frame = Frame.of(page)
        text = page.get_textpage()
        try:
            drawn = drawings(page, frame)
            letters = _Letters(text, frame, drawn)
            words = tuple(letters.words())
        finally:
            text.close()
        characters = sum(len(word.text) for word in words)
        scanned = characters < _LETTERS_OF_TEXT and drawn.is_picture(frame.width * frame.height)
        return Page(at + 1, frame.height, () if scanned else words, drawn, scanned, letters.hidden)
    finally:
        page.close()


class _Letters:
    """The characters of one page. Every question to pdfium costs a microsecond, so most are asked once a word.

    :ivar hidden: whether there was text that cannot be seen.
    """

    def __init__(self, text: pdfium.PdfTextPage, frame: Frame, drawn: Drawings) -> None:
        self._text = text.raw
        self._frame = frame
        self._drawn = drawn
        # Behind the picture of a scan, invisible letters are what a machine has read there.
        self._is_scan = drawn.is_picture(frame.width * frame.height)
        self._style: dict[int, _Style] = {}
        self._box = pdfium_c.FS_RECTF()
        self.hidden = False

    def words(self) -> Iterator[Word]:
        """The visible words."""
        letters: list[str] = []
        start = 0
        count = pdfium_c.FPDFText_CountChars(self._text)
        for at in range(count + 1):
            code = pdfium_c.FPDFText_GetUnicode(self._text, at) if at < count else 0x20
            letter = _HYPHENS.get(code) or chr(code)
            ends = letter.isspace() or not code
            if not ends:
                start = start if letters else at
                letters.append(letter)
            if letters and (ends or letter == HYPHEN):
                word = self._word("".join(letters), start, start + len(letters) - 1)
                letters = []
                if word is not None:
                    yield word

    def _word(self, text: str, first: int, last: int) -> Word | None:
        before, after = self._place(first), self._place(last)
        x0, x1 = min(before[0], after[0]), max(before[2], after[2])
        y0, y1 = min(before[1], after[1]), max(before[3], after[3])
        style = self._style_at(first)
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        outside = not (0 <= x <= self._frame.width and 0 <= y <= self._frame.height)
        unseen = style.invisible and not self._is_scan
        if unseen or outside or y1 - y0 < _MIN_FONT_SIZE or (style.white and not self._drawn.cover(x, y)):
            self.hidden = True
            return None
        if not text.isascii():
            # Characters beyond the first plane come in halves.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Word(text, x0, y0, x1, y1, style.bold)

    def _place(self, at: int) -> tuple[float, float, float, float]:
        box = self._box
        pdfium_c.FPDFText_GetLooseCharBox(self._text, at, box)
        return self._frame.box(box.left, box.bottom, box.right, box.top)

    def _style_at(self, at: int) -> _Style:
        """How the piece of text that a character belongs to is drawn."""
        piece = pdfium_c.FPDFText_GetTextObject(self._text, at)
        if not piece:
            return _Style(invisible=False, white=False, bold=False)
        address = ctypes.addressof(piece.contents)
        style = self._style.get(address)
        if style is None:
            style = self._style[address] = _style(piece)
        return style


def _style(piece: object) -> _Style:
    invisible = pdfium_c.FPDFTextObj_GetTextRenderMode(piece) == pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE
    colour = [ctypes.c_uint() for _ in range(4)]
    coloured = pdfium_c.FPDFPageObj_GetFillColor(piece, *colour)
    white = bool(coloured) and min(part.value for part in colour[:3]) >= _WHITE
    clear = bool(coloured) and colour[3].value == 0
    font = pdfium_c.FPDFTextObj_GetFont(piece)
    name = ctypes.create_string_buffer(_MAX_NAME_LENGTH)
    pdfium_c.FPDFFont_GetBaseFontName(font, name, _MAX_NAME_LENGTH)
    bold = bool(_BOLD.search(name.value)) or pdfium_c.FPDFFont_GetWeight(font) >= _BOLD_WEIGHT
    return _Style(invisible or clear, white, bold)
