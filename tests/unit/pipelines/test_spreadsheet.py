"""CSV for spreadsheets: no cell is executed as a formula."""

import csv
import io

import pytest

from pipelines.spreadsheet import csv_lines


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
