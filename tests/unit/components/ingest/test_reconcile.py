"""Disagreements between records, index and lexicon, made by hand, and their repair."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from components.ingest.document import Revision, SourceDocument
from components.ingest.encode import meta_of
from components.ingest.enrich import ChunkEnricher
from components.ingest.reconcile import Findings, compare, recount, repair
from components.ingest.split import DocumentSplitter
from components.ingest.write import ChunkWriter, remove_documents
from tenants import index
from tenants.core.context import Tenant
from tenants.core.errors import IndexDamaged, TryAgain
from tenants.core.points import Hit
from tenants.index import open_collection
from tenants.index.qdrant_edge import EdgeCollection
from tenants.knowledge import documents, lexicon
from tenants.storage import files
from tenants.work import uploads


def write(revisions: Sequence[Revision]) -> None:
    split = DocumentSplitter().run(revisions=list(revisions))["revisions"]
    ChunkWriter().run(revisions=ChunkEnricher().run(revisions=split)["revisions"])


def write_document(doc_id: str) -> tuple[str, ...]:
    write([Revision(SourceDocument(doc_id, f"Статья {doc_id}", "Вода не сливается. Промойте фильтр."), "hash")])
    record = documents.get(doc_id)
    assert record is not None
    return record.chunk_ids


def mended() -> Findings:
    """Return the findings after repairing them and checking the result."""
    result = compare(count=True)
    repair(result, write)
    assert compare(count=True).clean
    return result


def test_a_record_without_a_stored_text_is_marked_for_ingest(tenant: Tenant) -> None:
    lost = write_document("a")
    open_collection().delete(lost)
    record = documents.get("a")
    assert record is not None
    documents.remove("a")
    documents.put(record)
    repair(compare(), write)
    opened = documents.get("a")
    assert opened == replace(record, content_hash="", chunk_ids=())
    assert write_document("a") == lost
    assert not compare().incomplete


@pytest.mark.parametrize("name", ["status", "title"])
def test_chunks_that_disagree_with_their_record_are_corrected(tenant: Tenant, name: str) -> None:
    ids, _ = write_document("a"), write_document("b")
    (hit,) = open_collection().fetch(ids)
    meta = meta_of(hit.payload)
    open_collection().describe({ids[0]: {**hit.payload, "meta": {**meta, name: "чужое"}}})
    result = mended()
    assert result.misdescribed == ("a",)
    # Terms are counted with the title.
    assert result.lexicon_differs == (name == "title")
    assert meta_of(open_collection().fetch(ids)[0].payload) == meta


def test_a_wrong_lexicon_is_recounted(tenant: Tenant) -> None:
    lexicon.begin()
    write_document("a")
    right = lexicon.current()
    lexicon.apply([lexicon.ChunkTerms(frozenset({"чужое"}), frozenset())])
    assert mended().lexicon_differs
    recount()
    assert replace(lexicon.current(), revision=0) == replace(right, revision=0)
    assert lexicon.begin(), "whoever writes closes the run"


def _ends_early(hits: Iterator[Hit]) -> Iterator[Hit]:
    yield next(hits)


def _answers_nothing(hits: Iterator[Hit]) -> Iterator[Hit]:
    yield from ()


def _fails_half_way(hits: Iterator[Hit]) -> Iterator[Hit]:
    yield next(hits)
    raise TryAgain("index_unavailable")


@pytest.mark.parametrize("fault", [_ends_early, _answers_nothing, _fails_half_way])
def test_an_index_that_is_read_in_part_changes_nothing(
    tenant: Tenant, fault: Callable[[Iterator[Hit]], Iterator[Hit]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_document("a"), write_document("b")
    before, scan = lexicon.current(), EdgeCollection.scan
    monkeypatch.setattr(EdgeCollection, "scan", lambda collection: fault(scan(collection)))
    for read in (recount, compare):
        with pytest.raises(TryAgain, match="index_unavailable"):
            read()
    assert lexicon.current() == before


def test_the_lexicon_of_an_emptied_index_stays(tenant: Tenant) -> None:
    ids = write_document("a")
    before = lexicon.current()
    open_collection().delete(ids)
    with pytest.raises(IndexDamaged):
        recount()
    assert lexicon.current() == before
    assert index.damage() == "missing"


def test_files_left_by_jobs_that_are_over_are_removed(tenant: Tenant) -> None:
    files.write(files.path("uploads", "over", "a.md"), b"")
    arriving = uploads.Upload("arriving")
    arriving.file("a.md").close()
    assert mended().uploads == ("over",)
    assert not files.names(files.path("uploads", "over"))
    assert files.names(files.path("uploads")) == ("arriving",)
    arriving.close(keep=False)


def test_removing_a_document_removes_its_chunks_and_words(tenant: Tenant) -> None:
    write_document("a")
    before = lexicon.current()
    write_document("b")
    assert remove_documents(["b", "unknown"]) == 1
    assert [record.doc_id for record in documents.all()] == ["a"]
    assert open_collection().count() == 1
    assert replace(lexicon.current(), revision=0) == replace(before, revision=0)
    assert remove_documents(["unknown"]) == 0
