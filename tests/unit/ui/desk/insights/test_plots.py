"""The geometry of plots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.desk.insights.plots import HEIGHT, WIDTH, line, stacked

STYLES = ("autonomous", "assisted")


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=90))
def test_nothing_is_drawn_outside(counts: list[tuple[int, int]]) -> None:
    parts = {f"d{at}": dict(zip(STYLES, pair, strict=True)) for at, pair in enumerate(counts)}
    plot = stacked(parts, STYLES)
    assert sum(1 for column in plot.columns if column.label) <= 8
    for column in plot.columns:
        assert 0 <= column.x <= column.x + column.width <= WIDTH
        for part in column.segments:
            assert part.y >= 0
            assert part.y + part.height <= HEIGHT


def test_a_line_of_shares_stands_above_its_columns() -> None:
    columns = stacked({"a": {"good": 75.0, "bad": 25.0}, "b": {"good": 100.0}}, ("good", "bad"), highest=100)
    (first_x, first_y), (second_x, second_y) = line((0.75, 1.0))
    centres = [column.x + column.width / 2 for column in columns.columns]
    assert [first_x, second_x] == pytest.approx(centres, abs=0.2)
    assert [first_y, second_y] == [column.segments[0].y for column in columns.columns]
    assert line((None, 1.0)) == ((second_x, second_y),)
