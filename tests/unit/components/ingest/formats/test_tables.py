"""Spreadsheets and delimited files: the delimiter is found, and no row parts from its header."""

import csv
import io
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.ingest import formats
from components.ingest.document import Chunk, Revision, SourceDocument
from components.ingest.formats import parsed
from components.ingest.markdown import markdown_blocks
from components.ingest.split import DocumentSplitter
from tenants.core.errors import Invalid, TooLarge
from tests.unit.components.ingest.formats.made import saved, workbook

HEADER = ("Код", "Значение", "Срок, дней")


def chunks(text: str) -> tuple[Chunk, ...]:
    (revision,) = DocumentSplitter().run([Revision(SourceDocument("a", "", text, "a.csv"), "hash")])["revisions"]
    return revision.chunks


def rows(text: str) -> list[list[str]]:
    """Return the cells of the only table of a Markdown text, without its ruler."""
    (block,) = markdown_blocks(text)
    assert block.kind == "table"
    first, _, *others = block.text.split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (first, *others)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251", "koi8-r"])
def test_delimiters_and_encodings(delimiter: str, encoding: str) -> None:
    given_rows = [HEADER, ("E10", "Нет воды, закрыт кран", "1,5"), ("E20", "Не сливается; засор", "2,5")]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(given_rows)
    assert rows(formats.read("a.csv", stream.getvalue().encode(encoding)).text) == [list(row) for row in given_rows]


def test_excel_names_its_delimiter() -> None:
    assert rows(formats.read("a.csv", b"sep=;\na,b;c\n1,2;3\n").text) == [["a,b", "c"], ["1,2", "3"]]


def test_every_chunk_of_a_long_table_has_the_header() -> None:
    body = [(f"E{at}", f"Проверьте узел номер {at} и замените его при износе", at) for at in range(200)]
    result = chunks(formats.read("a.xlsx", saved(workbook([HEADER, *body]))).text)
    assert len(result) > 5
    assert all(chunk.text.startswith("| Код | Значение | Срок, дней |\n| --- |") for chunk in result)
    lines = [line for chunk in result for line in chunk.text.split("\n")[2:]]
    assert lines == [f"| E{at} | Проверьте узел номер {at} и замените его при износе | {at} |" for at in range(200)]


def test_rows_of_a_very_wide_table_name_their_columns() -> None:
    header = [f"Характеристика номер {at} по паспорту изделия" for at in range(20)]
    text = formats.read("a.xlsx", saved(workbook([header, [f"v{at}" for at in range(20)], ["w"]]))).text
    first, second = markdown_blocks(text)
    assert "Характеристика номер 7 по паспорту изделия: v7;" in first.text
    assert second.text == "- Характеристика номер 0 по паспорту изделия: w"


def test_lines_above_the_header_are_paragraphs() -> None:
    given_rows = [["Прайс-лист"], [], HEADER, ("E1", "Бак", 5), (None, "Люк", None)]
    text = formats.read("a.xlsx", saved(workbook(given_rows))).text
    title, table = markdown_blocks(text)
    assert (title.kind, title.text) == ("prose", "Прайс-лист")
    assert table.text.endswith("| E1 | Бак | 5 |\n|  | Люк |  |")


def test_values_as_people_see_them() -> None:
    day, moment = date(2026, 1, 31), datetime(2026, 1, 31, 9, 5)
    book = workbook([["a", "b"], [3.0, 0.1 + 0.2], [True, day], [moment, "#N/A"], [0.15, 1]])
    book.worksheets[0]["A5"].number_format = "0%"
    assert rows(formats.read("a.xlsx", saved(book)).text) == [
        ["a", "b"],
        ["3", "0.3"],
        ["TRUE", "2026-01-31"],
        ["2026-01-31 09:05", ""],
        ["15%", "1"],
    ]


def test_sheets_are_sections_and_hidden_ones_left_out() -> None:
    book = workbook([HEADER, ("E1", "a", 1)], [HEADER, ("E2", "b", 2)], [HEADER, ("E3", "c", 3)])
    book.worksheets[2].sheet_state = "hidden"
    parsed = formats.read("a.xlsx", saved(book))
    assert [block.text for block in markdown_blocks(parsed.text) if block.kind == "heading"] == ["Тарифы 1", "Тарифы 2"]
    assert (parsed.flags, parsed.pages) == (("hidden_sheets",), 2)
    assert "E3" not in parsed.text


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_too_many_cells(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from components.ingest.formats import tables

    monkeypatch.setattr(tables, "MAX_CELLS", 10)
    data = b"a,b\n" * 6 if name == "a.csv" else saved(workbook([["a", "b"]] * 6))
    with pytest.raises(TooLarge, match="cells_too_many"):
        formats.read(name, data)
    assert parsed.MAX_CELLS > 10


def test_a_cell_without_end_is_refused() -> None:
    with pytest.raises(Invalid, match="table_invalid"):
        formats.read("a.csv", b'a,"' + b"x" * 1_000_001)


@given(st.lists(st.lists(st.text(alphabet='ab,;|"\n\t', max_size=5), min_size=2, max_size=4), min_size=2, max_size=5))
def test_no_cell_is_lost(given_rows: list[list[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter=";", quoting=csv.QUOTE_ALL).writerows(given_rows)
    parsed = formats.read("a.csv", f"sep=;\n{stream.getvalue()}".encode())
    text = "".join(block.text for block in markdown_blocks(parsed.text))
    for letter in "ab":
        assert text.count(letter) == sum(cell.count(letter) for row in given_rows for cell in row)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Size,Price\nS,10\nM,12,free from 800\n", ("rows_overlong",)),
        ("Prices of 2026\nSize,Price\nS,10,,\nM,12\n", ()),
    ],
)
def test_rows_longer_than_the_header_are_flagged(text: str, flags: tuple[str, ...]) -> None:
    assert formats.read("prices.csv", text.encode()).flags == flags
