"""What a PDF page shows besides text: ruling lines, which make tables, and filled areas and pictures, which cover."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from components.turn import Frozen

Box: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, right, top in points."""
_MAX_OBJECTS = 20_000
_MAX_SEGMENTS = 2_000
"""Maps and charts have more; tables do not."""
_THIN = 3.0
_MIN_RULE_LENGTH = 5.0
_MAX_FORM_DEPTH = 3
_WHITE = 250
_PICTURE_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Frame(Frozen):
    """How a page is turned: coordinates of the file into those of the page as it is read.

    :param turns: quarters, clockwise.
    """

    turns: int
    width: float
    height: float
    left: float
    bottom: float

    @classmethod
    def of(cls, page: pdfium.PdfPage) -> "Frame":
        width, height = page.get_size()
        left, bottom, _, _ = page.get_cropbox()
        return cls(page.get_rotation() // 90 % 4, width, height, left, bottom)

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """A box of the file as it stands on the page."""
        first, second = self._point(x0, y0), self._point(x1, y1)
        (left, right), (bottom, top) = sorted((first[0], second[0])), sorted((first[1], second[1]))
        return left, bottom, right, top

    def _point(self, x: float, y: float) -> tuple[float, float]:
        x, y = x - self.left, y - self.bottom
        match self.turns:
            case 1:
                return y, self.height - x
            case 2:
                return self.width - x, self.height - y
            case 3:
                return self.width - y, x
        return x, y


@dataclass(frozen=True, slots=True)
class Drawings(Frozen):
    """The drawings of a page.

    :param across: horizontal rules, `down` vertical ones.
    :param filled: coloured areas and pictures, which make white letters readable.
    :param pictures: pictures alone.
    """

    across: tuple[Box, ...]
    down: tuple[Box, ...]
    filled: tuple[Box, ...]
    pictures: tuple[Box, ...]

    def cover(self, x: float, y: float) -> bool:
        """Whether a coloured area or picture lies around a point."""
        return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in self.filled)

    def is_picture(self, area: float) -> bool:
        """Whether pictures take up so much of a page of that area that it is one itself."""
        return sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in self.pictures) >= _PICTURE_SHARE * area


def drawings(page: pdfium.PdfPage, frame: Frame) -> Drawings:
    """The drawings of a page, as far as they tell something about its text."""
    across: list[Box] = []
    down: list[Box] = []
    filled: list[Box] = []
    pictures: list[Box] = []
    for drawn in _objects(page):
        box = _bounds(drawn, frame)
        kind = pdfium_c.FPDFPageObj_GetType(drawn)
        if box is None:
            continue
        if kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            pictures.append(box)
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM:
            if _holds_picture(drawn, _MAX_FORM_DEPTH):
                pictures.append(box)
        elif kind == pdfium_c.FPDF_PAGEOBJ_SHADING:
            filled.append(box)
        elif kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            edges = [box] if _is_thin(box) else list(_edges(drawn, frame))
            across += [edge for edge in edges if edge[2] - edge[0] >= max(_MIN_RULE_LENGTH, edge[3] - edge[1])]
            down += [edge for edge in edges if edge[3] - edge[1] >= max(_MIN_RULE_LENGTH, edge[2] - edge[0])]
            if not _is_thin(box) and _is_coloured(drawn):
                filled.append(box)
    return Drawings(tuple(across), tuple(down), (*filled, *pictures), tuple(pictures))


def _objects(page: pdfium.PdfPage) -> Iterator[object]:
    for at in range(min(pdfium_c.FPDFPage_CountObjects(page.raw), _MAX_OBJECTS)):
        yield pdfium_c.FPDFPage_GetObject(page.raw, at)


def _holds_picture(form: object, depth: int) -> bool:
    for at in range(min(max(pdfium_c.FPDFFormObj_CountObjects(form), 0), _MAX_OBJECTS)):
        inner = pdfium_c.FPDFFormObj_GetObject(form, at)
        kind = pdfium_c.FPDFPageObj_GetType(inner)
        if kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            return True
        if kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth and _holds_picture(inner, depth - 1):
            return True
    return False


def _bounds(drawn: object, frame: Frame) -> Box | None:
    values = [ctypes.c_float() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetBounds(drawn, *values):
        return None
    return frame.box(*(value.value for value in values))


def _is_thin(box: Box) -> bool:
    return min(box[2] - box[0], box[3] - box[1]) <= _THIN


def _is_coloured(path: object) -> bool:
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium_c.FPDFPath_GetDrawMode(path, mode, stroke) or mode.value == pdfium_c.FPDF_FILLMODE_NONE:
        return False
    colour = [ctypes.c_uint() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetFillColor(path, *colour):
        return True
    return min(part.value for part in colour[:3]) < _WHITE


def _edges(path: object, frame: Frame) -> Iterator[Box]:
    """The straight pieces of a path that run along the page."""
    count = pdfium_c.FPDFPath_CountSegments(path)
    if count > _MAX_SEGMENTS:
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    start = last = (0.0, 0.0)
    for at in range(count):
        segment = pdfium_c.FPDFPath_GetPathSegment(path, at)
        if not pdfium_c.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        point = (x.value, y.value)
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == pdfium_c.FPDF_SEGMENT_LINETO and _is_thin(edge := frame.box(*last, *point)):
            yield edge
        if pdfium_c.FPDFPathSegment_GetClose(segment) and _is_thin(edge := frame.box(*point, *start)):
            yield edge
        last = point
