"""Difference of two texts, and a document's view of its edges."""

from components.ingest.records import PROPERTIES
from components.language.texts import text
from tenants.knowledge.edges import Edge
from ui.desk.document_view import TIES, DiffLine, difference, edge_between


def test_a_difference_shows_what_changed_with_some_lines_around() -> None:
    old = "\n".join(f"строка {number}" for number in range(12))
    lines = difference(old, old.replace("строка 6", "новая"))
    assert lines == (
        DiffLine("gap"),
        DiffLine("same", "строка 4"),
        DiffLine("same", "строка 5"),
        DiffLine("removed", "строка 6"),
        DiffLine("added", "новая"),
        DiffLine("same", "строка 7"),
        DiffLine("same", "строка 8"),
    )
    assert difference(old, old) == ()
    assert difference("", "a") == (DiffLine("added", "a"),)


def test_texts_of_too_many_lines_are_not_compared() -> None:
    assert difference("x\n" * 4_001, "x") is None
    assert difference("x\n" * 4_000, "y\n" * 4_000) is not None


def test_a_tie_is_the_edge_that_its_words_say() -> None:
    assert edge_between("a", "supersedes:out", "b", 1.0) == Edge("a", "supersedes", "b", 1.0)
    assert edge_between("a", "supersedes:in", "b", 0.5) == Edge("b", "supersedes", "a", 0.5)
    for locale in ("ru", "en"):
        assert all(text(f"desk.documents.tie.{choice}", locale) for choice in TIES)
        assert all(text(f"desk.documents.property.{name}", locale) for name in PROPERTIES)
