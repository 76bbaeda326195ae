"""A small PDF file that takes long to read."""

import zlib
from collections.abc import Sequence


def slow_pdf() -> bytes:
    """Build a PDF of fifteen kilobytes with 200 pages of the same 20,000 words: it takes 15 s to read."""
    words = zlib.compress(b"BT /F 12 Tf 72 720 Td " + b"(aaaa bbbb cccc) Tj 1 0 Td " * 20_000 + b"ET")
    stream = b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(words), words)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    kids = b" ".join(b"%d 0 R" % (at + 5) for at in range(200))
    tree = b"<</Type/Pages/Count 200/Kids[%b]/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>>>" % kids
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
    return pdf([b"<</Type/Catalog/Pages 2 0 R>>", tree, font, stream, *[page] * 200])


def pdf(objects: Sequence[bytes]) -> bytes:
    data = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(data + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
