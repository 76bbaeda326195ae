"""Customers' attachments: recognised by content, refused if unreadable, and saved under a safe name."""

from collections.abc import Iterator
from io import BytesIO
from struct import pack
from zlib import compress, crc32

import pytest
from PIL import Image

from components.ingest.attachments import MEDIA_TYPES, AttachmentScanner, download_name
from tenants.core.errors import CallerError, TryAgain
from tests.unit.components.ingest.formats import made


@pytest.fixture(scope="module")
def scanner() -> Iterator[AttachmentScanner]:
    created = AttachmentScanner(1)
    yield created
    created.close()


def picture(form: str, side: int = 8) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (side, side), "red").save(stream, form)
    return stream.getvalue()


def png_bomb(side: int) -> bytes:
    """Build a picture of a few bytes that claims this size in pixels."""
    head = pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", compress(bytes(1_000))), (b"IEND", b""))
    chunks = (pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data)) for kind, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_is_known_by_its_content(scanner: AttachmentScanner, form: str) -> None:
    for name in ("a.png", "a.exe", "a", "a.html"):
        assert scanner.format_of(name, picture(form)) == form.lower()


def test_documents_are_known_by_their_content_and_texts_by_being_text(scanner: AttachmentScanner) -> None:
    for name in ("a.txt", "a.md", "a.log", "A.LOG"):
        assert scanner.format_of(name, "Не включается".encode("cp1251")) == "plain"
    assert scanner.format_of("a.csv", b"a;b\n1;2\n") == "csv"
    assert scanner.format_of("a.bin", made.pdf(made.lines("Счёт"))) == "pdf"
    with pytest.raises(CallerError, match="attachment_unreadable"):
        scanner.format_of("a.pdf", made.pdf(made.lines("Счёт"), password="secret"))


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.html", b"<p>", "attachment_unsupported"),
        ("a.txt", b"<!doctype html><script>", "attachment_unsupported"),
        ("a.svg", b"<svg/>", "attachment_unsupported"),
        ("a.exe", b"MZ", "attachment_unsupported"),
        ("a.json", b"{}", "attachment_unsupported"),
        ("a.txt", bytes(range(256)), "attachment_unreadable"),
        ("a.txt", b" ", "attachment_unreadable"),
        ("a.pdf", b"no pdf", "attachment_unreadable"),
        ("a.pdf", b"%PDF-1.7", "attachment_unreadable"),
        ("a.docx", b"PK\x03\x04", "attachment_unreadable"),
        ("a.png", picture("PNG")[:50], "attachment_unreadable"),
        ("a.jpg", picture("JPEG", 200)[:700], "attachment_unreadable"),
        ("a.png", png_bomb(100_000), "attachment_unreadable"),
        ("a.png", png_bomb(7_000), "attachment_unreadable"),
    ],
)
def test_what_cannot_be_read_is_refused(scanner: AttachmentScanner, name: str, data: bytes, code: str) -> None:
    with pytest.raises(CallerError, match=code):
        scanner.format_of(name, data)
    assert scanner.format_of("a.txt", b"text") == "plain"


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = AttachmentScanner(1)
    monkeypatch.setattr(impatient, "seconds", 0.001)
    with pytest.raises(CallerError, match="attachment_unreadable"):
        impatient.format_of("a.txt", b"text")
    monkeypatch.setattr("components.ingest.sandbox.sys.executable", "/nonexistent")
    with pytest.raises(TryAgain):
        impatient.format_of("a.txt", b"text")
    impatient.close()


def test_a_name_is_no_path_and_ends_as_its_format() -> None:
    for name, form, saved in (
        ("чек.pdf", "pdf", "чек.pdf"),
        ("photo.JPG", "jpeg", "photo.JPG"),
        ("photo.jpeg", "jpeg", "photo.jpeg"),
        ("invoice.exe", "pdf", "invoice.exe.pdf"),
        ("../../etc/passwd", "plain", "passwd.txt"),
        ("C:\\Users\\a.png", "png", "a.png"),
        (".png", "png", "png.png"),
        ("", "gif", "file.gif"),
        ("...", "gif", "file.gif"),
        ("Снимок 12:30\u202fAM.png", "png", "Снимок 12_30 AM.png"),
        ("gnp\u202e.exe", "png", "gnp .exe.png"),
        ("a\r\nSet-Cookie: x.csv", "csv", "a  Set-Cookie_ x.csv"),
        ("я" * 300 + ".txt", "plain", "я" * 80 + ".txt"),
    ):
        assert form in MEDIA_TYPES
        assert download_name(name, form) == saved
