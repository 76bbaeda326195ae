"""Maintenance of documents on every index engine: set values are searchable, disagreements are repaired."""

import pytest

from components.ingest.document import SourceDocument
from components.ingest.encode import meta_of
from components.retrieve.retriever import haystack_filters, to_conditions
from components.turn import Filters
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from tenants.core.context import Tenant
from tenants.core.points import Point
from tenants.index import open_collection
from tests.records import found_by_headings, found_by_stems

ORPHAN = "00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def ingest() -> Ingest:
    return Ingest()


@pytest.fixture
def library(tenant: Tenant, ingest: Ingest) -> Library:
    ingest.run([SourceDocument(doc_id, f"Статья {doc_id}", "Вода не сливается.") for doc_id in ("a", "b", "c")])
    return Library(ingest.rewrite)


def doc_ids(*statuses: str) -> set[object]:
    conditions = to_conditions(haystack_filters(Filters(statuses=statuses)))  # type: ignore[arg-type]
    hits = found_by_stems("вода не сливается", conditions=conditions)
    return {meta_of(hit.payload)["doc_id"] for hit in hits}


def test_documents_are_found_by_their_status(library: Library) -> None:
    library.change("a", {"status": "archived"})
    library.change("b", {"status": "superseded"})
    assert doc_ids("archived") == {"a"}
    assert doc_ids("superseded", "active") == {"b", "c"}
    assert doc_ids("deprecated") == doc_ids() == set()
    library.change("a", {"status": None})
    assert doc_ids("active") == {"a", "c"}


def test_a_title_is_encoded_and_everything_else_described(library: Library) -> None:
    library.change("a", {"title": "Холодильник", "tags": ["x"]})
    hits = found_by_headings("холодильник")
    assert [(meta_of(hit.payload)["doc_id"], meta_of(hit.payload)["tags"]) for hit in hits] == [("a", ["x"])]
    assert library.check().clean


def test_disagreements_are_repaired(library: Library) -> None:
    collection = open_collection()
    first, second, third = (library.read(doc_id).chunk_ids[0] for doc_id in ("a", "b", "c"))
    (hit,) = collection.fetch([first])
    before = {hit.id: hit.payload for hit in collection.scan()}
    collection.upsert([Point(ORPHAN, {}, hit.payload)])
    collection.describe({first: {**hit.payload, "meta": {**meta_of(hit.payload), "status": "archived"}}})
    collection.delete([second])
    wrong = library.check(mend=True)
    assert (wrong.orphans, wrong.misdescribed, wrong.incomplete) == ((ORPHAN,), ("a",), ("b",))
    assert wrong.lexicon_differs
    assert {hit.id: hit.payload for hit in collection.scan()} == before
    assert third in before
    assert library.check().clean


def test_an_earlier_version_is_found_again(library: Library, ingest: Ingest) -> None:
    ingest.run([SourceDocument("a", "Статья a", "Насос гудит.")])
    assert found_by_stems("гудит")
    library.restore("a", 1)
    assert not found_by_stems("гудит")
    assert library.check().clean
