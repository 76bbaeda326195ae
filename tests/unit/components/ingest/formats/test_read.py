"""Any bytes under any name give a document or a typed error; content matters more than the name."""

import random
from collections.abc import Callable

import pytest
from docx.document import Document
from hypothesis import example, given
from hypothesis import strategies as st

from components.ingest import formats
from components.ingest.document import Refusal, SourceDocument
from components.ingest.files import RawArticle
from components.ingest.formats.detect import FORMATS, Format
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import Parsed
from components.ingest.parse import ArticleParser
from tenants.core.errors import CallerError, Invalid, UnsupportedMedia
from tests.unit.components.ingest.formats.made import lines, pdf, saved, word, workbook


def _build(document: Document) -> None:
    document.add_heading("Шланг", 1)
    document.add_paragraph("и фильтр")


FILES: dict[str, bytes] = {
    "pdf": pdf(lines("Проверьте шланг", "и фильтр")),
    "docx": word(_build),
    "xlsx": saved(workbook([["Код", "Значение"], ["E10", "нет воды"]])),
    "html": "<!doctype html><title>a</title><table><tr><td>Шланг<td>2</table><p>фильтр</p>".encode(),
    "csv": "Код;Значение\nE10;нет воды\n".encode("cp1251"),
    "json": '[{"question": "Как?", "answer": "Так."}]'.encode(),
    "md": "---\ntitle: T\n---\n# Шланг\n\n- a".encode("utf-16"),
    "txt": "Q: Как?\nA: Так.\n\nQ: Где?\nA: Тут.".encode(),
}
BINARY = ("pdf", "docx", "xlsx")
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def harmless(read: Callable[[], Parsed]) -> bool:
    """Whether the result is storable text or a typed error."""
    try:
        read().text.encode()
    except CallerError:
        return True
    except UnicodeEncodeError:
        return False
    return True


@given(st.sampled_from(list(FORMATS)), st.binary(max_size=200))
def test_any_bytes(suffix: str, data: bytes) -> None:
    assert harmless(lambda: formats.read(f"a{suffix}", data))


@example("xlsx", 1404, 9)
@given(st.sampled_from(list(FILES)), st.integers(0, 2**32), st.integers(1, 20))
def test_damaged_files(ending: str, seed: int, faults: int) -> None:
    data = bytearray(FILES[ending])
    chance = random.Random(seed)
    for _ in range(faults):
        data[chance.randrange(len(data))] = chance.randrange(256)
    assert harmless(lambda: formats.read(f"a.{ending}", bytes(data)))


@pytest.mark.parametrize("ending", [*BINARY, "html"])
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.pdf", "a.docx", "a", "a.bin"])
def test_content_counts_for_more_than_the_name(ending: str, name: str) -> None:
    assert formats.read(name, FILES[ending]) == formats.read(f"a.{ending}", FILES[ending])


@pytest.mark.parametrize("ending", BINARY)
def test_a_name_that_contradicts_the_content_is_refused(ending: str) -> None:
    with pytest.raises(Invalid, match="file_mislabelled"):
        formats.read(f"a.{ending}", b"plain text")


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.doc", b"x"), ("a.xls", COMPOUND), ("a.docx", COMPOUND), ("a", b"x")],
)
def test_unknown_formats(name: str, data: bytes) -> None:
    with pytest.raises(UnsupportedMedia, match="file_unsupported"):
        formats.read(name, data)


PARSER = ArticleParser()


@pytest.mark.parametrize(("ending", "form"), [("pdf", "pdf"), ("docx", "docx"), ("csv", "csv")])
def test_the_parser_reads_files_in_the_sandbox(ending: str, form: Format) -> None:
    parsed = PARSER.parse(RawArticle(FILES[ending], form, f"dir/a.{ending}"))
    assert isinstance(parsed, SourceDocument)
    alone = formats.read(f"dir/a.{ending}", FILES[ending])
    assert (parsed.doc_id, parsed.text, parsed.markup) == (f"dir/a.{ending}", alone.text, alone.markup)
    assert isinstance(PARSER.parse(RawArticle(FILES[ending][:50], form, f"a.{ending}")), Refusal) or ending == "csv"


def test_an_faq_is_a_source_type_of_its_own() -> None:
    parsed = PARSER.parse(RawArticle(FILES["json"], "json", "a.json"))
    assert isinstance(parsed, SourceDocument)
    assert (parsed.markup, parsed.meta) == ("faq", {"source_type": "faq"})


def test_flags_travel_with_the_document() -> None:
    page = b"<!doctype html><p>a</p><p hidden>Ignore</p>"
    parsed = PARSER.parse(RawArticle(page, "html", "https://acme.ru/a"))
    assert isinstance(parsed, SourceDocument)
    assert (parsed.url, parsed.meta) == ("https://acme.ru/a", {"flags": ["hidden_text"]})


TEXT = "Ошибка E20 означает, что вода не сливается.\nВыньте вилку из розетки и прочистите фильтр: «Слив», 5 минут."


def test_russian_is_read_in_every_encoding() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1251", "koi8-r"):
        text = TEXT if encoding != "koi8-r" else TEXT.translate(str.maketrans("«»", '""'))
        assert decoded(text.encode(encoding)) == text
        assert decoded(text.upper().encode(encoding)) == text.upper()
    assert decoded(f"{TEXT}\x02\x1a".encode("cp1251")) == f"{TEXT}\x02\x1a"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00",
        "Liberté, égalité".encode("cp1252"),
        "日本語の説明書".encode("shift-jis"),
        b"\xff\xfe\x00",
        b"a\x00b",
        "Привет".encode("utf-16-le"),
    ],
)
def test_undecodable_files_are_refused(data: bytes) -> None:
    with pytest.raises(Invalid, match="file_undecodable"):
        decoded(data)
