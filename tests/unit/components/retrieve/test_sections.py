"""Reading the rest of a section: no more than is needed, and never a document that was written anew."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from components.retrieve.sections import section_of

from components.retrieve import sections
from components.turn import Passage
from tenants import documents
from tenants.documents import DocumentRecord
from tenants.index import Hit
from tenants.index.protocol import Json
from tests.turns import passage

IDS = tuple(f"c{number}" for number in range(20))


class Shelf:
    """A collection that remembers what was fetched."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        self.asked += ids
        return [Hit(one, 0.0, {"content": one, "meta": _meta(one)}) for one in ids]


def _meta(chunk_id: str) -> dict[str, Json]:
    meta: dict[str, Json] = {
        "chunk_id": chunk_id,
        "doc_id": "d",
        "chunk_index": int(chunk_id[1:]),
        "sentences": [[0, 2]],
    }
    meta |= dict.fromkeys(("title", "heading", "source", "updated_at"), "")
    return meta | {"url": None, "lang": "ru", "trust": "auto", "status": "active", "priority": 0}


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    fake_shelf = Shelf()
    monkeypatch.setattr(sections, "open_collection", lambda: fake_shelf)
    monkeypatch.setattr(documents, "get", lambda _: DocumentRecord("d", "", "", "", IDS, ""))
    return fake_shelf


def hit_passage(at: int, section: tuple[int, int] | None) -> Passage:
    return replace(passage("Текст.", f"c{at}", doc_id="d"), chunk_index=at, section=section, status="superseded")


def test_a_single_chunk_section_needs_no_read(shelf: Shelf) -> None:
    alone = hit_passage(3, None)
    assert section_of(alone, {}) == (alone,)
    assert shelf.asked == []


def test_known_chunks_are_not_read_again(shelf: Shelf) -> None:
    one, two = hit_passage(3, (2, 4)), hit_passage(2, (2, 4))
    assert [part.chunk_id for part in section_of(one, {"c2": two})] == ["c2", "c3", "c4"]
    assert shelf.asked == ["c4"]


def test_section_chunks_take_their_status_from_the_document(shelf: Shelf) -> None:
    assert {part.status for part in section_of(hit_passage(3, (2, 4)), {})} == {"superseded"}
    assert shelf.asked


def test_of_a_very_long_section_only_neighbouring_chunks_are_read(shelf: Shelf) -> None:
    assert [part.chunk_index for part in section_of(hit_passage(10, (0, 19)), {})] == list(range(4, 17))
    assert len(shelf.asked) == 12


def test_a_rewritten_document_leaves_the_retrieved_passage_alone(shelf: Shelf) -> None:
    moved = replace(hit_passage(3, (2, 4)), chunk_index=5)
    assert section_of(moved, {}) == (moved,)
    assert shelf.asked == []
