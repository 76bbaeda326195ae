"""Text written as Markdown is read back unchanged."""

from hypothesis import given
from hypothesis import strategies as st

from components.ingest.formats import writing
from components.ingest.markdown import markdown_blocks

MARKS = st.text(alphabet="ab 1*_`[]()<>&;#!|~-+=.:\\/\"'вг", max_size=30).map(lambda text: " ".join(text.split()))


def shown(markdown: str) -> str:
    return bare("".join(block.text for block in markdown_blocks(markdown)))


def bare(text: str) -> str:
    """Remove spaces, which are inserted where adjacent characters would form markup."""
    return "".join(text.split())


@given(MARKS)
def test_a_line_is_preserved_whatever_it_starts_with(text: str) -> None:
    # A star at the start of a list item becomes a dash.
    assert shown(writing.prose(text)).replace("*", "-") == bare(text).replace("*", "-")


@given(MARKS)
def test_a_heading_is_what_was_written(text: str) -> None:
    results = markdown_blocks(writing.heading(f"x {text}", 2))
    assert [(block.kind, block.level) for block in results] == [("heading", 2)]
    assert bare(results[0].text) == bare(f"x {text}".rstrip("# "))


@given(st.lists(st.lists(MARKS, min_size=2, max_size=4), min_size=1, max_size=4))
def test_a_table_is_one_table_with_all_its_cells(rows: list[list[str]]) -> None:
    rows = [["x", *rows[0]], *rows]
    results = markdown_blocks(writing.table([[writing.inline(cell) for cell in row] for row in rows]))
    assert [block.kind for block in results] == ["table"]
    header, _, *body = results[0].text.split("\n")
    width = max(map(len, rows))
    expected = ["|".join(["", *row, *[""] * (width - len(row)), ""]) for row in _escaped(rows)]
    assert [bare(line) for line in (header, *body)] == [bare(line) for line in expected]


def _escaped(rows: list[list[str]]) -> list[list[str]]:
    return [[cell.replace("|", "\\|") for cell in row] for row in rows]


def test_list_items_stay_one_list() -> None:
    assert writing.document(["a", "- b", "- c", "", "d"]) == "a\n\n- b\n- c\n\nd"
