"""Consistency checks of a tenant's stored data, independent of ingestion."""

from collections import Counter
from collections.abc import Iterable, Mapping

from components.ingest.document import SourceDocument
from components.ingest.encode import terms_of
from tenants.core.points import Hit
from tenants.index import open_collection
from tenants.knowledge import documents, lexicon


def article(doc_id: str, sections: int = 3, edit: str = "", **meta: str | int) -> SourceDocument:
    """Return an article with one chunk per section. `edit` goes into the second one."""
    parts = [
        f"## Раздел {at} статьи {doc_id}\n\n" + f"Проверьте шланг номер {at}, {edit if at == 1 else ''} он цел. " * 12
        for at in range(sections)
    ]
    return SourceDocument(doc_id, f"Статья {doc_id}", "\n\n".join(parts), f"{doc_id}.md", meta=meta)


def hits(doc_id: str = "") -> list[Hit]:
    """Return the stored chunks, of one document if named, by id."""
    result = (hit for hit in open_collection().scan() if not doc_id or meta(hit)["doc_id"] == doc_id)
    return sorted(result, key=lambda hit: hit.id)


def meta(hit: Hit) -> Mapping[str, object]:
    result = hit.payload["meta"]
    assert isinstance(result, dict)
    return result


def check_consistent() -> None:
    """Check that records, index and lexicon describe the same chunks, each complete and in order."""
    stored = {hit.id: hit for hit in hits()}
    named = [chunk_id for record in documents.all() for chunk_id in record.chunk_ids]
    assert sorted(named) == sorted(stored)
    for record in documents.all():
        assert record.content_hash
        own = [meta(stored[chunk_id]) for chunk_id in record.chunk_ids]
        assert [item["chunk_index"] for item in own] == list(range(len(own)))
        assert {item["doc_id"] for item in own} == {record.doc_id}
    known = lexicon.current()
    terms = [terms_of(hit.payload) for hit in stored.values()]
    assert known.chunks == len(stored)
    assert dict(known.stems) == _counted(stem for term in terms for stem in term.stems)
    assert dict(known.words) == _counted(word for term in terms for word in term.words)


def _counted(terms: Iterable[str]) -> dict[str, int]:
    return dict(Counter(terms))
