"""What a run that was cut off leaves behind, made by hand, and how it is put right."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from components.ingest.document import Revision, SourceDocument
from components.ingest.enrich import ChunkEnricher
from components.ingest.reconcile import reconcile, recount
from components.ingest.split import DocumentSplitter
from components.ingest.write import ChunkWriter, remove_documents
from settings import get_settings
from tenants import database, documents, index, lexicon
from tenants.context import Tenant, acting_as
from tenants.index import Point, open_collection
from tenants.registry import Registry


@pytest.fixture
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")) as acme:
        yield acme
    index.close_all()
    database.close_all()
    get_settings.cache_clear()


def written(doc_id: str) -> tuple[str, ...]:
    document = SourceDocument(doc_id, f"Статья {doc_id}", "Вода не сливается. Промойте фильтр.")
    split = DocumentSplitter().run(revisions=[Revision(document, "hash")])
    ChunkWriter().run(revisions=ChunkEnricher().run(revisions=split["revisions"])["revisions"])
    record = documents.get(doc_id)
    assert record is not None
    return record.chunk_ids


def test_chunks_that_no_record_names_go(tenant: Tenant) -> None:
    kept = written("a")
    (hit,) = open_collection().fetch(kept)
    orphan = "00000000-0000-0000-0000-000000000001"
    open_collection().upsert([Point(orphan, {}, hit.payload)])
    assert reconcile() == 1
    assert [found.id for found in open_collection().scan()] == list(kept)
    assert reconcile() == 0


def test_a_record_whose_chunks_are_missing_is_opened(tenant: Tenant) -> None:
    lost, _ = written("a"), written("b")
    open_collection().delete(lost)
    assert reconcile() == 0
    assert {record.doc_id: record.content_hash for record in documents.all()} == {"a": "", "b": "hash"}
    assert written("a") == lost
    assert open_collection().count() == 2


def test_the_lexicon_is_counted_anew_and_the_run_closed(tenant: Tenant) -> None:
    lexicon.begin()
    written("a")
    right = lexicon.current()
    lexicon.apply([lexicon.ChunkTerms(frozenset({"чужое"}), frozenset())])
    recount()
    assert replace(lexicon.current(), revision=0) == replace(right, revision=0)
    assert not lexicon.begin()


def test_removing_a_document_takes_its_chunks_and_words_along(tenant: Tenant) -> None:
    written("a")
    before = lexicon.current()
    written("b")
    assert remove_documents(["b", "unknown"]) == 1
    assert [record.doc_id for record in documents.all()] == ["a"]
    assert open_collection().count() == 1
    assert replace(lexicon.current(), revision=0) == replace(before, revision=0)
    assert remove_documents(["unknown"]) == 0


def test_writing_nothing_opens_nothing(tenant: Tenant) -> None:
    assert ChunkWriter().run(revisions=[])["written"].added == 0
    with pytest.raises(Exception, match="collection_missing"):
        open_collection().upsert([])
