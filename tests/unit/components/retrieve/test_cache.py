"""Cached searches are reused only for the same query over the same chunks."""

from collections.abc import Iterator
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest

from components.retrieve.cache import SearchCache, SearchResult
from components.retrieve.retriever import TenantRetriever, haystack_filters
from components.turn import Filters
from settings import get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.core.points import Point
from tenants.index import Collection, open_collection
from tenants.storage import database
from tests.turns import document

ANNA, BORIS = Tenant("acme", "anna"), Tenant("globex", "boris")
FOUND = SearchResult((document("Гарантия два года."),))


class Shelf:
    """A collection as far as searches know it."""

    def __init__(self, version: str | None = "1") -> None:
        self.version = version


def searched(
    searches: SearchCache, shelf: Shelf, *what: object, found: SearchResult = FOUND, who: Tenant = ANNA
) -> bool:
    """Whether the answer was known already."""
    with acting_as(who):
        result = searches.get_or_search(shelf, what, lambda: found)
    assert result.documents == found.documents
    return result.cached


def test_a_repeated_search_is_served_from_the_cache() -> None:
    searches, shelf = SearchCache(10), Shelf()
    assert [searched(searches, shelf, "гарантия") for _ in range(3)] == [False, True, True]
    assert not searched(searches, shelf, "гарантии")


def test_the_cache_is_invalid_after_a_write_and_for_other_tenants() -> None:
    searches, shelf = SearchCache(10), Shelf()
    searched(searches, shelf, "гарантия")
    assert not searched(searches, shelf, "гарантия", who=BORIS)
    shelf.version = "2"
    assert not searched(searches, shelf, "гарантия")


@pytest.mark.parametrize(("most", "version"), [(0, "1"), (10, None)])
def test_without_a_size_or_a_version_nothing_is_cached(most: int, version: str | None) -> None:
    searches = SearchCache(most)
    assert [searched(searches, Shelf(version), "гарантия") for _ in range(2)] == [False, False]


def test_a_partial_search_is_not_cached() -> None:
    searches, part = SearchCache(10), SearchResult(FOUND.documents, complete=False)
    assert [searched(searches, Shelf(), "гарантия", found=part) for _ in range(2)] == [False, False]


def test_a_search_overtaken_by_a_write_is_not_cached() -> None:
    searches, shelf = SearchCache(10), Shelf()

    def written_meanwhile() -> SearchResult:
        shelf.version = "2"
        return FOUND

    with acting_as(ANNA):
        searches.get_or_search(shelf, "гарантия", written_meanwhile)
    for version in ("1", "2"):
        assert not searched(searches, Shelf(version), "гарантия")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    """Anna's collection in the embedded engine."""
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(ANNA):
        yield open_collection(create=True)
        index.close_all()
    database.close_all()
    get_settings.cache_clear()


def stored(text: str, number: int) -> Point:
    chunk_id = str(uuid5(NAMESPACE_OID, str(number)))
    meta: dict[str, Json] = {"chunk_id": chunk_id, "doc_id": "d"}
    return Point(chunk_id, {"text-sparse": {7: 1.0}}, {"id": chunk_id, "content": text, "meta": meta})


def looked_for(retriever: TenantRetriever, filters: Filters = Filters()) -> tuple[list[str], bool]:  # noqa: B008
    """Search; return the texts found, and whether they come from the cache."""
    outputs = retriever.run(query="гарантия", filters=haystack_filters(filters))
    return sorted(one.content or "" for one in outputs["documents"]), outputs["cached"]


def test_a_write_is_seen_by_the_next_question(shelf: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.retrieve.retriever.encode_query", lambda *_: {7: 1.0})
    retriever = TenantRetriever()
    texts: list[str] = []
    for number, text in enumerate(("один", "два", "три")):
        shelf.upsert([stored(text, number)])
        texts.append(text)
        for cached in (False, True):
            assert looked_for(retriever) == (sorted(texts), cached)
    assert looked_for(retriever, Filters(tags=()))[0] == []
    shelf.describe({stored("два", 1).id: stored("другое", 1).payload})
    assert "другое" in looked_for(retriever)[0]
    shelf.delete([stored("другое", 1).id])
    assert len(looked_for(retriever)[0]) == 2
