"""Documents over HTTP: list, read, change, roll back, remove, and the effects on answers."""

from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest

from tests.service.serving import problem

FILTER: dict[str, object] = {
    "doc_id": "kb/фильтр насоса.md",
    "title": "Как часто чистят фильтр насоса",
    "text": "## Очистка\n\nФильтр насоса чистят раз в три месяца. Сначала слейте воду.\n",
    "tags": ["насос"],
}
FOUND_BY: dict[str, object] = {"doc_ids": [FILTER["doc_id"]]}
QUESTION: dict[str, object] = {"question": "Как часто чистят фильтр насоса?", "filters": FOUND_BY}


def path(doc_id: object = FILTER["doc_id"]) -> str:
    return f"/documents/{quote(str(doc_id))}"


@pytest.fixture
def document(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> str:
    """The document as first ingested, without overrides or earlier versions."""
    acme.delete(path())
    assert ingest("acme", [FILTER]).json()["added"] == 1
    return str(FILTER["doc_id"])


def test_a_document_is_returned_with_the_requested_parts(acme: httpx.Client, document: str) -> None:
    bare = acme.get(path()).json()
    assert bare["doc_id"] == document
    assert (bare["status"], bare["version"], bare["chunk_count"], bare["tags"]) == ("active", 1, 1, ["насос"])
    assert [bare[part] for part in ("text", "chunks", "versions", "edges")] == [None] * 4
    full = acme.get(path(), params={"include": "text,chunks,versions,edges"}).json()
    assert full["text"] == FILTER["text"]
    assert full["edges"] == []
    assert [(version["version"], version["in_force"]) for version in full["versions"]] == [(1, True)]
    (chunk,) = full["chunks"]
    assert (chunk["heading"], chunk["index"], chunk["overlap"]) == ("Очистка", 0, 0)
    assert chunk["text"][slice(*chunk["sentences"][1])] == "Сначала слейте воду."
    assert "фильтр" in {term["stem"] for term in chunk["terms"]}


def test_the_list_has_filters_and_pages(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> None:
    articles = [
        {"doc_id": f"list/{at}", "title": f"Список {at}", "text": "Текст.", "tags": ["list"]} for at in range(5)
    ]
    assert ingest("acme", articles).status_code == 200
    first = acme.get("/documents", params={"tags": "list", "limit": 3}).json()
    assert (len(first["documents"]), first["total"]) == (3, 5)
    second = acme.get("/documents", params={"tags": "list", "limit": 3, "after": first["next"]}).json()
    assert (len(second["documents"]), second["next"]) == (2, None)
    several = acme.get(
        "/documents", params={"tags": ["list", "насос"], "words": "СПИСОК 4", "statuses": "active"}
    ).json()
    assert [document["doc_id"] for document in several["documents"]] == ["list/4"]
    assert acme.get("/documents", params={"statuses": "archived", "tags": "list"}).json()["total"] == 0


def test_set_properties_reach_answers_and_persist(
    acme: httpx.Client, document: str, ingest: Callable[..., httpx.Response]
) -> None:
    changed = acme.patch(path(), json={"status": "archived", "trust": "accepted", "tags": ["склад"]})
    assert changed.status_code == 200
    assert changed.json()["overrides"] == {"status": "archived", "trust": "accepted", "tags": ["склад"]}
    assert ingest("acme", [{**FILTER, "text": f"{FILTER['text']}Затем закройте крышку."}]).json()["updated"] == 1
    read = acme.get(path()).json()
    assert (read["status"], read["tags"], read["version"]) == ("archived", ["склад"], 2)
    hidden = acme.post("/ask/run", json={**QUESTION, "filters": {**FOUND_BY, "statuses": ["active"]}}).json()
    assert hidden["meta"]["chunks"]["retrieved"] == 0
    shown = acme.post("/ask/run", json={**QUESTION, "filters": {"statuses": ["archived"]}}).json()
    assert "три месяца" in shown["answer"]["text"]
    assert shown["citations"][0]["trust"] == "accepted"
    assert acme.patch(path(), json={"status": None, "trust": None, "tags": None}).json()["overrides"] == {}


def test_an_earlier_version_answers_again(
    acme: httpx.Client, document: str, ingest: Callable[..., httpx.Response]
) -> None:
    edited = str(FILTER["text"]).replace("три месяца", "полгода")
    ingest("acme", [{**FILTER, "text": edited}])
    assert "полгода" in acme.post("/ask/run", json=QUESTION).json()["answer"]["text"]
    restored = acme.patch(path(), json={"version": 1, "priority": 5}).json()
    assert (restored["version"], restored["priority"]) == (3, 5)
    assert "три месяца" in acme.post("/ask/run", json=QUESTION).json()["answer"]["text"]
    assert acme.get(path(), params={"include": "text", "version": 2}).json()["text"] == edited
    problem(acme.patch(path(), json={"version": 9, "priority": 7}), 404, "version_unknown")
    problem(acme.patch(path(), json={"version": 2, "title": " "}), 422, "metadata_invalid")
    assert acme.get(path()).json() == restored


def test_a_filter_changes_many_documents(acme: httpx.Client, document: str) -> None:
    body = {"filter": {"words": "фильтр насоса"}, "set": {"status": "deprecated"}}
    assert acme.patch("/documents", json=body).json() == {"documents": 1}
    assert acme.get(path()).json()["status"] == "deprecated"


def test_a_removed_document_is_gone(acme: httpx.Client, document: str) -> None:
    assert acme.delete(path()).json() == {"doc_id": document, "chunks": 1}
    problem(acme.get(path()), 404, "document_unknown")
    problem(acme.delete(path()), 404, "document_unknown")
    assert acme.post("/ask/run", json=QUESTION).json()["meta"]["chunks"]["retrieved"] == 0


def test_any_document_id_can_be_requested(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> None:
    ids = ["a b", "100%", "x?y=z", "a#b", "№/ё.md", "a//b", "a%2Fb", "{doc_id}", "documents", "a/", "+", "é", "e\u0301"]
    assert ingest("acme", [{"doc_id": doc_id, "title": doc_id, "text": "x"} for doc_id in ids]).json()["errors"] == []
    for doc_id in ids:
        assert acme.get(path(doc_id)).json()["doc_id"] == doc_id
        assert acme.delete(f"/documents/{quote(doc_id, safe='')}").json()["doc_id"] == doc_id


def test_invalid_queries_are_refused(acme: httpx.Client, document: str) -> None:
    for address, params, field, code in (
        ("/documents", {"status": "active"}, "status", "unknown_field"),
        ("/documents", {"statuses": "lost"}, "statuses.0", "field_invalid"),
        ("/documents", {"limit": "0"}, "limit", "field_invalid"),
        ("/documents", {"date_from": "yesterday"}, "date_from", "field_invalid"),
        ("/documents", {"flagged": "perhaps"}, "flagged", "field_invalid"),
        ("/documents", {"tenant": "globex"}, "tenant", "unknown_field"),
        (path(), {"include": "everything"}, "include", "field_invalid"),
        (path(), {"version": "0"}, "version", "field_invalid"),
        (path(), {"part": "text"}, "part", "unknown_field"),
    ):
        body = problem(acme.get(address, params=params), 422, code)
        assert body["errors"] == [{"field": field, "code": code}]


def test_a_change_of_many_needs_a_condition_and_a_property(acme: httpx.Client) -> None:
    bodies: list[dict[str, object]] = [
        {"filter": {}, "set": {"status": "archived"}},
        {"filter": {"tags": ["x"]}, "set": {}},
        {"set": {"status": "archived"}},
        {"filter": {"tags": ["x"], "collection": "globex"}, "set": {"status": "archived"}},
        {"filter": {"statuses": ["lost"]}, "set": {"status": "archived"}},
    ]
    for body in bodies:
        response = acme.patch("/documents", json=body)
        problem(response, 422, str(response.json()["code"]))
    assert acme.get("/documents", params={"statuses": "archived", "words": "возврат"}).json()["total"] == 0
