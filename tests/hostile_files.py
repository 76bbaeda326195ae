"""Generators of hostile files. No file is stored, and every claimed size can be checked."""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import islice

from components.turn import Frozen
from evaluation.benchmarks.attacks import pdf

_SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_LAUGHS = 10


@dataclass(frozen=True, slots=True)
class Bomb(Frozen):
    """A hostile file. `kind` names the attack in a report."""

    kind: str
    name: str
    data: bytes


def bombs(scale: float = 1.0) -> Iterator[Bomb]:
    """Yield every attack once.

    :param scale: 1 for the full size; a hundredth for tests that have no time to make gigabytes.
    """
    million = int(1_000_000 * scale)
    yield Bomb("zip", "bomb.docx", docx(b"<w:p>" + b" " * (1_000 * million) + b"</w:p>"))
    yield Bomb("zip that lies", "lies.docx", lying(docx(b" " * (300 * million))))
    yield Bomb("zip of one part many times", "overlap.docx", overlapping(docx(b"a" * million), max(50, million // 200)))
    yield Bomb("nested zip", "nested.docx", nested(5))
    yield Bomb("zip of many parts", "parts.docx", package({f"word/{at}.xml": b"" for at in range(million // 20)}))
    yield Bomb("zip-slip names", "slip.docx", docx(b"", {"../../../../tmp/opora-slip.xml": b"<a/>"}))
    yield Bomb(
        "zip-slip names, absolute", "absolute.xlsx", package({"/etc/opora-slip": b"x", "xl/workbook.xml": b"<a/>"})
    )
    yield Bomb("XML entities", "laughs.docx", package({"word/document.xml": laughs("w:document")}))
    yield Bomb("XML entities, UTF-16", "laughs16.xlsx", package({"xl/workbook.xml": laughs("workbook", "utf-16")}))
    yield Bomb("XML entity of a file", "external.docx", package({"word/document.xml": external("w:document")}))
    yield Bomb("cells", "cells.xlsx", xlsx(rows(million // 100, 100)))
    yield Bomb("cells, one too many", "more.xlsx", xlsx(rows(million // 100 + 1, 100)))
    yield Bomb("cells, far apart", "far.xlsx", xlsx(b'<row r="1"><c r="A1"><v>1</v></c></row>' + far()))
    yield Bomb("one string in every cell", "shared.xlsx", xlsx(references(million // 10), shared=b"a" * (million // 2)))
    yield Bomb("deep HTML", "deep.html", b"<html><body>" + b"<div>" * million + b"text" + b"</div>" * million)
    yield Bomb("HTML never closed", "open.html", b"<html><body><p>text" + b"<b><i><a href=x>" * (million // 4))
    yield Bomb("HTML table in tables", "tables.html", b"<html><body>" + b"<table><tr><td>" * (million // 20) + b"text")
    yield Bomb(
        "deep Word tables",
        "tables.docx",
        docx(b"<w:tbl><w:tr><w:tc>" * (million // 100) + b"</w:tc></w:tr></w:tbl>" * (million // 100)),
    )
    yield Bomb("PDF page tree loop", "loop.pdf", pdf_loop())
    yield Bomb("PDF of many pages", "pages.pdf", pdf_pages(million // 10))
    yield Bomb("PDF stream that unpacks", "stream.pdf", pdf_stream(500 * million))
    yield Bomb("PDF form in itself", "form.pdf", pdf_form_loop())
    yield Bomb("CSV of one line", "line.csv", b'"' + b'a,""' * (million // 4))
    yield Bomb("CSV of many columns", "columns.csv", (b"a," * 1_000 + b"\n") * (million // 500))
    yield Bomb("deep JSON", "deep.json", b"[" * million)
    yield Bomb("Markdown brackets", "brackets.md", b"![" * (million // 10) + b"](" * (million // 10))
    yield Bomb("Markdown quotes", "quotes.md", b">" * million + b"text")
    yield Bomb("Markdown stars", "stars.md", b"*a_b" * (million // 10))
    yield Bomb(
        "Markdown back-ticks", "ticks.md", b"".join(b"`" * (at % 300 + 1) + b"a" for at in range(million // 500))
    )
    yield Bomb("Markdown tags", "tags.md", b"<a " * (million // 10) + b"<!--" * (million // 10))
    yield Bomb("text of one word", "word.txt", b"a" * million)
    yield Bomb("YAML aliases", "alias.md", b"---\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n---\ntext")


def package(parts: Mapping[str, bytes]) -> bytes:
    """Build a ZIP archive of these parts."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def docx(body: bytes, other_parts: Mapping[str, bytes] | None = None) -> bytes:
    """Build a Word file with this body."""
    document = f'<w:document xmlns:w="{_WORD}"><w:body>'.encode() + body + b"</w:body></w:document>"
    types = {"word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"}
    return package({**_frame("word/document.xml", types), "word/document.xml": document, **(other_parts or {})})


def xlsx(data: bytes, shared: bytes = b"") -> bytes:
    """Build a workbook with one sheet of these rows and one shared string."""
    start = f'<{{}} xmlns="{_SPREADSHEET}" xmlns:r="{_OFFICE}">'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.{}+xml"
    types = {
        "xl/workbook.xml": kind.format("sheet.main"),
        "xl/worksheets/sheet1.xml": kind.format("worksheet"),
        "xl/sharedStrings.xml": kind.format("sharedStrings"),
    }
    related = {"worksheet": "worksheets/sheet1.xml", "sharedStrings": "sharedStrings.xml"}
    return package(
        {
            **_frame("xl/workbook.xml", types),
            "xl/_rels/workbook.xml.rels": _relations(related),
            "xl/workbook.xml": start.format("workbook").encode()
            + b'<sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": start.format("worksheet").encode()
            + b"<sheetData>"
            + data
            + b"</sheetData></worksheet>",
            "xl/sharedStrings.xml": start.format("sst").encode() + b"<si><t>" + shared + b"</t></si></sst>",
        }
    )


def _frame(main: str, types: Mapping[str, str]) -> dict[str, bytes]:
    named = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in types.items())
    start = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    content = f'<Types xmlns="{_PACKAGE}/content-types">{start}{named}</Types>'
    return {"[Content_Types].xml": content.encode(), "_rels/.rels": _relations({"officeDocument": main})}


def _relations(targets: Mapping[str, str]) -> bytes:
    listed = "".join(
        f'<Relationship Id="rId{at}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(targets.items(), 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'.encode()


def rows(count: int, columns: int) -> bytes:
    """Build rows of numbers that are not all alike."""
    cells = (b"<c><v>%d</v></c>" % (at * 7_919 % 100_003) for at in range(count * columns))
    return b"".join(b"<row>" + b"".join(islice(cells, columns)) + b"</row>" for _ in range(count))


def far() -> bytes:
    """Build a row with the last cell that a sheet can have."""
    return b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def references(count: int) -> bytes:
    """Build rows with one cell each, all of which refer to the first shared string."""
    return b'<row><c t="s"><v>0</v></c></row>' * count


def lying(archive: bytes) -> bytes:
    """Set every declared unpacked size of the archive to 100 bytes."""
    data = bytearray(archive)
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.find(mark)
        while at >= 0:
            struct.pack_into("<I", data, at + offset, 100)
            at = data.find(mark, at + 4)
    return bytes(data)


def overlapping(archive: bytes, count: int) -> bytes:
    """Add `count` entries to the directory of the archive, all over the bytes of its largest part."""
    with zipfile.ZipFile(BytesIO(archive)) as zip_file:
        largest = max(zip_file.infolist(), key=lambda info: info.file_size)
        start, entries = zip_file.start_dir, len(zip_file.infolist())
    directory = archive[start : archive.rfind(b"PK\x05\x06")]
    further = b""
    for at in range(count):
        name = f"word/{at:06}.xml".encode()
        fields = (
            20,
            20,
            0,
            8,
            0,
            0x21,
            largest.CRC,
            largest.compress_size,
            largest.file_size,
            len(name),
            0,
            0,
            0,
            0,
            0,
        )
        further += b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", *fields, largest.header_offset) + name
    complete_directory = directory + further
    end = struct.pack("<HHHHIIH", 0, 0, entries + count, entries + count, len(complete_directory), start, 0)
    return archive[:start] + complete_directory + b"PK\x05\x06" + end


def nested(depth: int) -> bytes:
    """Nest archives in archives."""
    data = b"0" * 1_000_000
    for level in range(depth):
        data = package({f"{level}-{copy}.zip": data for copy in range(8)})
    return data


def laughs(root: str, encoding: str = "utf-8") -> bytes:
    """Build XML whose entities expand to a thousand million words."""
    entities = '<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, _LAUGHS))
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [{entities}]><{root} xmlns:w="{_WORD}">&e9;</{root}>'
    )
    return text.encode(encoding)


def external(root: str) -> bytes:
    """Build XML with an external entity that refers to a local file."""
    return f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><{root} xmlns:w="{_WORD}">&e;</{root}>'.encode()


_CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"


def pdf_loop() -> bytes:
    """Build a page tree that is its own child."""
    return pdf(
        [_CATALOG, b"<</Type/Pages/Count 10/Kids[2 0 R 2 0 R 3 0 R]/Parent 2 0 R>>", b"<</Type/Pages/Kids[2 0 R]>>"]
    )


def pdf_pages(count: int) -> bytes:
    """Build this number of pages with a word on each."""
    kids = b" ".join(b"%d 0 R" % (at + 5) for at in range(count))
    tree = b"<</Type/Pages/Count %d/Kids[%b]/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>>>" % (count, kids)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
    return pdf([_CATALOG, tree, font, _stream(b"BT /F 12 Tf 72 720 Td (A page of words) Tj ET"), *[page] * count])


def pdf_stream(size: int) -> bytes:
    """Build a page whose few kilobytes unpack to `size` bytes of drawing."""
    tree = b"<</Type/Pages/Count 1/Kids[4 0 R]/MediaBox[0 0 595 842]>>"
    page = b"<</Type/Page/Parent 2 0 R/Contents 3 0 R>>"
    return pdf([_CATALOG, tree, _stream(b"0 0 m 9 9 l S " * (size // 14), packed=True), page])


def pdf_form_loop() -> bytes:
    """Build a page that draws a form that draws itself, twice."""
    tree = b"<</Type/Pages/Count 1/Kids[4 0 R]/MediaBox[0 0 595 842]/Resources<</XObject<</X 3 0 R>>>>>>"
    form = _stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 3 0 R>>>>")
    return pdf([_CATALOG, tree, form, b"<</Type/Page/Parent 2 0 R/Contents 5 0 R>>", _stream(b"/X Do /X Do")])


def _stream(data: bytes, entries: bytes = b"", *, packed: bool = False) -> bytes:
    if packed:
        data, entries = zlib.compress(data), entries + b"/Filter/FlateDecode"
    return b"<<%b/Length %d>>\nstream\n%b\nendstream" % (entries, len(data), data)
