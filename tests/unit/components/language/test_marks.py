"""Marks of Markdown that a reader of one line does not see."""

from components.language.marks import on_one_line


def test_marks_of_lines_are_left_out() -> None:
    markdown = "### Causes\n\n- the filter is *not* clean;\n  - 2-5 °C\n\n1. Open it.\n\n```sh\nls | wc\n```"
    assert on_one_line(markdown) == "Causes the filter is *not* clean; 2-5 °C 1. Open it. ls | wc"
    assert on_one_line("| Size | Price |\n| --- | --- |\n| 22 cm | £4 |") == "Size | Price 22 cm | £4"
