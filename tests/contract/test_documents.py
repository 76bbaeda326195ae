"""Stored data of documents besides their chunks, on every database: records, versions, and search."""

from dataclasses import fields, replace
from datetime import UTC, datetime

from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tenants.core.context import Tenant, acting_as
from tenants.knowledge import catalogue, documents, versions
from tenants.knowledge.catalogue import Selection
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.versions import MAX_VERSIONS, DocumentVersion

ANNA = Tenant("acme", "anna")
OTHER = Tenant("globex", "anna")
E20 = DocumentRecord(
    "e20",
    "Ошибка E20",
    "e20.md",
    "h1",
    ("c1", "c2"),
    "2024-01-31",
    status="archived",
    url="https://example.com/e20",
    lang="ru",
    trust="accepted",
    priority=7,
    tags=("насос", "слив"),
    project_key="p",
    evidence_tier="t",
    source_type="faq",
    flags=("hidden_text",),
    version=3,
    given={"status": "active", "tags": []},
    overrides={"status": "archived", "tags": ["насос", "слив"]},
)


def version(number: int, doc_id: str = "e20", text: str = "Текст № 🙂") -> DocumentVersion:
    return DocumentVersion(
        doc_id, number, "Ошибка", text, "e20.md", None, "", "markdown", f"h{number}", {"tags": ["x"], "toc": [{"a": 1}]}
    )


def test_a_record_comes_back_whole(acme: Tenant) -> None:
    unset = {field.name for field in fields(E20) if getattr(E20, field.name) == field.default}
    assert unset == {"lang", "ingested_at"}
    documents.put(E20)
    assert documents.get("e20") == E20
    stored = documents.get("e20")
    assert stored is not None
    moment = stored.ingested_at
    assert moment is not None
    documents.put(replace(stored, priority=8))
    again = documents.get("e20")
    assert again is not None
    assert again.ingested_at == moment


def test_a_version_comes_back_whole(acme: Tenant) -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    documents.put(replace(E20, version=1), new_versions=[replace(version(1), created_at=moment)])
    stored = versions.get("e20", 1)
    assert stored == version(1)
    assert stored is not None
    assert stored.created_at == moment
    (listed,) = versions.history("e20")
    assert listed == replace(version(1), text="")
    with acting_as(OTHER):
        assert versions.get("e20", 1) is None
        assert versions.history("e20") == ()
        assert versions.hashes(["e20"]) == {}
        assert list(versions.in_force(["e20"])) == []


def test_the_newest_versions_are_kept_and_go_with_their_document(acme: Tenant) -> None:
    with acting_as(OTHER):
        documents.put(replace(E20, version=1), new_versions=[version(1)])
    for number in range(1, MAX_VERSIONS + 4):
        documents.put(replace(E20, version=number), new_versions=[version(number)])
    assert [version.version for version in versions.history("e20")] == list(range(MAX_VERSIONS + 3, 3, -1))
    assert versions.hashes(["e20", "missing"]) == {"e20": f"h{MAX_VERSIONS + 3}"}
    documents.put(replace(E20, version=5))
    assert versions.hashes(["e20"]) == {"e20": "h5"}
    assert [version.version for version in versions.in_force(["missing", "e20"])] == [5]
    documents.remove("e20")
    assert versions.history("e20") == ()
    with acting_as(OTHER):
        assert len(versions.history("e20")) == 1


def test_many_documents_are_read_in_slices(acme: Tenant) -> None:
    ids = [f"d{at:03}" for at in range(150)]
    documents.put(
        *(replace(E20, doc_id=doc_id, version=1) for doc_id in ids), new_versions=[version(1, d) for d in ids]
    )
    assert sorted(version.doc_id for version in versions.in_force(ids)) == ids
    assert len(versions.hashes(ids)) == 150


SHELF = [
    E20,
    DocumentRecord("Возврат", "ВОЗВРАТ товара", "", "", (), "2026-05-01", tags=("возврат",)),
    DocumentRecord("доставка", "Доставка", "", "", (), "2025-01-01", status="superseded", trust="raw", project_key="q"),
    DocumentRecord(
        "Z", "Last", "", "", (), "2026-05-02", lang="en", source_type="faq", evidence_tier="t", flags=("injection",)
    ),
]


def test_selections(acme: Tenant) -> None:
    documents.put(*SHELF)
    with acting_as(OTHER):
        documents.put(replace(E20, doc_id="foreign"))
    for selection, ids in (
        (Selection(), ["Z", "e20", "Возврат", "доставка"]),
        (Selection(statuses=("archived", "superseded")), ["e20", "доставка"]),
        (Selection(statuses=()), []),
        (Selection(trust=("raw",)), ["доставка"]),
        (Selection(tags=("слив", "возврат")), ["e20", "Возврат"]),
        (Selection(tags=()), []),
        (Selection(project_keys=("p", "q")), ["e20", "доставка"]),
        (Selection(project_keys=("",)), ["Z", "Возврат"]),
        (Selection(evidence_tiers=("t",), source_types=("faq",), flagged=True), ["Z", "e20"]),
        (Selection(flagged=False), ["Возврат", "доставка"]),
        (Selection(languages=("ru",)), ["e20", "Возврат", "доставка"]),
        (Selection(languages=()), []),
        (Selection(stale=True), []),
        (Selection(stale=False, languages=("en",)), ["Z"]),
        (Selection(words="возврат"), ["Возврат"]),
        (Selection(words="ОШИБКА e2"), ["e20"]),
        (Selection(words="%"), []),
        (Selection(doc_ids=("Z", "missing")), ["Z"]),
        (Selection(doc_ids=()), []),
        (Selection(date_from="2026-05-01"), ["Z", "Возврат"]),
        (Selection(date_from="2025-01-01", date_to="2026-05-01"), ["Возврат", "доставка"]),
    ):
        assert [doc_id for batch in catalogue.batches(selection, 2) for doc_id in batch] == ids, selection
        page = catalogue.page(selection)
        assert ([record.doc_id for record in page.documents], page.total, page.following) == (ids, len(ids), None)


@limits(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.sets(st.text("aЯ/.ё~Z", min_size=1, max_size=3), max_size=12), limit=st.integers(1, 5))
def test_pages_hold_every_document_once(acme: Tenant, ids: set[str], limit: int) -> None:
    documents.remove(*(record.doc_id for record in documents.all()))
    documents.put(*(replace(E20, doc_id=doc_id) for doc_id in ids))
    seen: list[str] = []
    page = catalogue.page(Selection(), limit=limit)
    while True:
        assert len(page.documents) <= limit
        assert page.total == len(ids)
        seen += [record.doc_id for record in page.documents]
        if page.following is None:
            break
        page = catalogue.page(Selection(), after=page.following, limit=limit)
    assert seen == sorted(ids)
