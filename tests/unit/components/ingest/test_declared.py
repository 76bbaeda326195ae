"""Declarations of relations in documents: one normal form, and refusals that name the field."""

import pytest

from components.ingest.document import SourceDocument
from components.ingest.metadata import checked_metadata, declared_edges, declared_rejected
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.rejected import Rejected


def document(**meta: Json) -> SourceDocument:
    return SourceDocument("new.md", "", "Текст", meta=checked_metadata(meta, "new.md"))


@pytest.mark.parametrize(
    ("given_as", "weights"),
    [
        ("old.md", {"old.md": 1.0}),
        (["old.md", "older.md"], {"old.md": 1.0, "older.md": 1.0}),
        ({"doc_id": "old.md", "weight": 0.5}, {"old.md": 0.5}),
        (["old.md", {"doc_id": "older.md", "weight": 0}], {"old.md": 1.0, "older.md": 0.0}),
        ([], {}),
    ],
)
def test_declared_edges_are_read_in_every_form(given_as: Json, weights: dict[str, float]) -> None:
    expected = [Edge("new.md", "supersedes", other, weight, declared=True) for other, weight in weights.items()]
    assert declared_edges(document(supersedes=given_as)) == expected


def test_every_kind_of_edge_is_read_and_no_other_key() -> None:
    parsed_document = document(
        depends_on="a", implements="b", decision_for="c", related_to="d", supersedes="e", see_also="f"
    )
    assert {(edge.kind, edge.to_doc) for edge in declared_edges(parsed_document)} == {
        ("depends_on", "a"),
        ("implements", "b"),
        ("decision_for", "c"),
        ("related_to", "d"),
        ("supersedes", "e"),
    }
    assert parsed_document.meta["see_also"] == "f"


def test_a_rejected_approach_has_its_own_day_or_its_documents() -> None:
    parsed_document = document(
        rejected=["Вернуть наличными", {"text": " Вернуть на другую карту ", "reason": "нельзя", "date": "2024-03-01"}],
        updated_at="2026-01-31",
    )
    assert declared_rejected(parsed_document) == [
        Rejected("Вернуть наличными", "", "2026-01-31", "new.md", declared=True),
        Rejected("Вернуть на другую карту", "нельзя", "2024-03-01", "new.md", declared=True),
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("supersedes", "new.md"),
        ("supersedes", ""),
        ("supersedes", "two\nlines"),
        ("related_to", {"weight": 1}),
        ("related_to", {"doc_id": "a", "wieght": 1}),
        ("related_to", {"doc_id": "a", "weight": 1.5}),
        ("related_to", {"doc_id": "a", "weight": True}),
        ("related_to", [["a"]]),
        ("related_to", ["a"] * 101),
        ("rejected", {"reason": "нет"}),
        ("rejected", {"text": "a", "reason": "x" * 1001}),
        ("rejected", {"text": "a", "date": "вчера"}),
    ],
)
def test_invalid_declarations_are_refused_by_field(field: str, value: Json) -> None:
    with pytest.raises(Invalid) as refused:
        document(**{field: value})
    assert (refused.value.code, refused.value.params) == ("metadata_invalid", {"field": field})
