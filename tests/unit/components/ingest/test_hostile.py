"""Hostile files: small generated ones, and public ones if available."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.ingest.formats.archive import check_archive
from components.ingest.formats.parsed import MAX_PARTS
from components.ingest.sandbox import Sandbox
from tenants.core.errors import CallerError
from tests.hostile_files import bombs, docx, external, laughs, lying, overlapping, package, pdf_pages

SMALL = 0.002
EXPECTED = {
    "zip": "archive_too_large",
    "zip that lies": "file_damaged",
    "zip of one part many times": "file_damaged",
    "nested zip": "archive_nested",
    "zip-slip names": "archive_name_unsafe",
    "zip-slip names, absolute": "archive_name_unsafe",
    "XML entities": "xml_doctype",
    "XML entities, UTF-16": "xml_doctype",
    "XML entity of a file": "xml_doctype",
    "cells, far apart": "cells_too_many",
    "deep HTML": "file_too_deep",
    "HTML never closed": "file_too_deep",
    "PDF page tree loop": "file_damaged",
    "deep JSON": "json_invalid",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox_worker = Sandbox(workers=1)
    yield sandbox_worker
    sandbox_worker.close()


def outcome(box: Sandbox, name: str, data: bytes) -> str:
    """Return the code of the refusal; empty for a document."""
    try:
        box.read(name, data)
    except CallerError as refused:
        return refused.code
    return ""


def test_every_small_bomb_ends_in_text_or_a_typed_error(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = {bomb.kind: outcome(sandbox, bomb.name, bomb.data) for bomb in bombs(SMALL)}
    assert len(results) > 30
    assert "file_too_slow" not in results.values()
    assert {kind: code for kind, code in results.items() if kind in EXPECTED and code != EXPECTED[kind]} == {}
    assert not [*tmp_path.iterdir(), *Path("/tmp").glob("opora-slip*")]


def archives() -> Iterator[tuple[bytes, str | None]]:
    """Yield archives with the code of their refusal. Making them takes seconds, so not while tests are collected."""
    yield from (
        (docx(b"<w:p>" + b" " * 25_000_000 + b"</w:p>"), "archive_too_large"),
        (package({f"{number}": b"" for number in range(MAX_PARTS + 1)}), "archive_parts_too_many"),
        (overlapping(docx(b"a" * 300_000), 50), "file_damaged"),
        (package({"word/document.xml": b"<a/>", "word/media/inner.7z": b"7z"}), "archive_nested"),
        (package({"word/../../../etc/passwd": b"x"}), "archive_name_unsafe"),
        (package({"word\\..\\..\\startup.xml": b"x"}), "archive_name_unsafe"),
        (package({"C:/windows/x.xml": b"x"}), "archive_name_unsafe"),
        (package({"word/a\nb.xml": b"x"}), "archive_name_unsafe"),
        (package({"word/document.xml": laughs("w:document")}), "xml_doctype"),
        (package({"word/document.bin": laughs("w:document", "utf-16-le")}), "file_damaged"),
        (package({"word/document.bin": b"\n\n<!-- a -->" + external("w:document")}), "xml_doctype"),
        (package({"word/document.xml": b'<?xml version="1.0" encoding="utf-7"?><a/>'}), "file_damaged"),
        (package({"word/media/picture.svg": b"<!DOCTYPE svg><svg/>", "word/document.xml": b"<a/>"}), None),
        (package({"word/document.xml": b"<a>"}), None),
        (b"PK\x03\x04 and nothing more", "file_damaged"),
        ("EncryptedPackage".encode("utf-16-le").join((b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"")), "file_encrypted"),
        (pdf_pages(2), None),
        (b"", None),
    )


def test_an_archive_is_refused_before_it_is_unpacked(subtests: pytest.Subtests) -> None:
    for number, (archive, code) in enumerate(archives()):
        with subtests.test(number=number, code=code):
            if code is None:
                check_archive(archive)
                continue
            with pytest.raises(CallerError) as refused:
                check_archive(archive)
            assert refused.value.code == code


def test_a_part_may_not_have_a_password() -> None:
    archive = bytearray(docx(b"text"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        archive[archive.find(mark) + offset] |= 1
    with pytest.raises(CallerError) as refused:
        check_archive(bytes(archive))
    assert refused.value.code == "file_encrypted"


def test_a_declared_size_is_all_that_is_unpacked(sandbox: Sandbox) -> None:
    assert outcome(sandbox, "lies.docx", lying(docx(b"<w:p/>" * 100_000))) == "file_damaged"
