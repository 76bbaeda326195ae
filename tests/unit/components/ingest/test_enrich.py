"""Metadata of documents and chunks: what is refused, and whose value counts."""

from datetime import UTC, datetime

import pytest

from components.ingest.document import Chunk, Revision, SourceDocument
from components.ingest.enrich import ChunkEnricher, language
from components.ingest.metadata import checked_metadata, storable
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.core.json import Json


def enriched(document: SourceDocument, enricher: ChunkEnricher | None = None) -> dict[str, Json]:
    chunk = Chunk("Текст. Ещё.", "A › B", 3, "id", ((0, 6), (7, 11)), {"content_hash": "h"})
    with acting_as(Tenant("acme", "me")):
        (revision,) = (enricher or ChunkEnricher()).run(revisions=[Revision(document, "", "Название", (chunk,))])[
            "revisions"
        ]
    return dict(revision.chunks[0].meta)


def test_every_key_is_there() -> None:
    assert enriched(SourceDocument("d", "", "Текст", "a.md")) == {
        "tenant": "acme",
        "doc_id": "d",
        "chunk_id": "id",
        "chunk_index": 3,
        "title": "Название",
        "heading": "A › B",
        "source": "a.md",
        "url": None,
        "lang": "ru",
        "updated_at": datetime.now(UTC).date().isoformat(),
        "content_hash": "h",
        "project_key": "",
        "tags": [],
        "source_type": "article",
        "evidence_tier": "",
        "trust": "auto",
        "status": "active",
        "priority": 0,
        "sentences": [[0, 6], [7, 11]],
    }


def test_the_document_wins_over_the_pipeline() -> None:
    enricher = ChunkEnricher(trust="accepted", tags=["general"], source_type="faq", priority=7)
    assert enriched(SourceDocument("d", "", "x"), enricher)["trust"] == "accepted"
    own: dict[str, Json] = {"trust": "raw", "tags": ["own"], "updated_at": "2020-01-02", "section": "s"}
    meta = enriched(SourceDocument("d", "", "x", meta=own), enricher)
    assert {**meta, **own} == meta
    assert (meta["source_type"], meta["priority"]) == ("faq", 7)


def test_nothing_in_a_document_can_name_a_tenant_or_an_id() -> None:
    hostile: dict[str, Json] = {
        "tenant": "other",
        "doc_id": "x",
        "chunk_id": "y",
        "sentences": [],
        "title": "z",
    }
    assert enriched(SourceDocument("d", "", "Текст", meta=hostile)) == enriched(SourceDocument("d", "", "Текст"))


def test_nested_and_huge_values_are_not_repeated_with_every_chunk() -> None:
    meta = enriched(SourceDocument("d", "", "x", meta={"toc": [{"a": 1}], "tree": {}, "long": "x" * 1001, "n": [1, 2]}))
    assert meta["n"] == [1, 2]
    assert not {"toc", "tree", "long"} & meta.keys()


def test_language() -> None:
    for text, expected in (
        ("Подключите Kubernetes cluster", "ru"),
        ("Connect the cluster", "en"),
        ("E20", "en"),
        ("Press «Пуск» to start the machine", "en"),
    ):
        assert language(text) == expected


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("inf")], {"a": {"b": float("-inf")}}])
def test_a_number_that_is_none_is_refused(value: Json) -> None:
    with pytest.raises(Invalid, match="metadata_invalid") as refused:
        checked_metadata({"weight": value})
    assert refused.value.params["field"] == "weight"


def test_other_numbers_stay() -> None:
    assert checked_metadata({"weight": 1.5, "sizes": [1, 2.5]}) == {"weight": 1.5, "sizes": [1, 2.5]}


def test_chunks_carry_a_bounded_part_of_the_metadata() -> None:
    """62 keys of 990 characters were repeated with each of 300 chunks: 20 MB of disk from a body of 1.4 MB."""
    meta: dict[str, Json] = {"brand": "Волна", **{f"key_{at}": "x" * 990 for at in range(62)}}
    stored = storable(meta)
    assert stored["brand"] == "Волна"
    assert sum(len(str(value)) for value in stored.values()) < 4_000
