"""Related documents over HTTP: stored, visible in answers, and isolated by tenant."""

from collections.abc import Callable

import httpx

from tests.service.serving import problem

QUESTION = "В течение какого срока можно вернуть посуду?"
DISHES: list[dict[str, object]] = [
    {
        "doc_id": "dishes-2024.md",
        "title": "В течение какого срока можно вернуть посуду",
        "text": "Посуду можно вернуть в течение 14 дней. Сохраните чек.",
        "updated_at": "2024-01-10",
    },
    {
        "doc_id": "dishes.md",
        "title": "В течение какого срока можно вернуть посуду",
        "text": "Посуду можно вернуть в течение 30 дней. Чек не нужен.",
        "updated_at": "2026-02-01",
        "supersedes": "dishes-2024.md",
        "rejected": [{"text": "Вернуть посуду почтой", "reason": "бьётся", "date": "2025-05-05"}],
    },
]


def test_declared_relations_are_listed_and_shown_with_the_answer(
    acme: httpx.Client, ingest: Callable[..., httpx.Response]
) -> None:
    assert ingest("acme", DISHES).json()["errors"] == []
    tie = {"from_doc": "dishes.md", "kind": "supersedes", "to_doc": "dishes-2024.md", "weight": 1.0, "declared": True}
    assert acme.get("/edges", params={"doc_id": "dishes-2024.md"}).json() == {"edges": [tie]}
    answer = acme.post("/ask/run", json={"question": QUESTION}).json()
    assert "30 дней" in answer["answer"]["text"]
    assert "10.01.2024" in answer["answer"]["notice"]
    assert "01.02.2026" in answer["answer"]["notice"]
    origins = {citation["doc_id"]: citation["origin"] for citation in answer["citations"]}
    assert origins.items() >= {"dishes.md": "primary", "dishes-2024.md": "conflicting"}.items()
    asked = acme.post("/ask/run", json={"question": "В течение какого срока можно вернуть посуду почтой?"}).json()
    assert "Способ «Вернуть посуду почтой» отклонён 05.05.2025. Причина: бьётся." in asked["answer"]["notice"]


def test_an_operator_sets_and_removes(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> None:
    assert ingest("acme", DISHES).json()["errors"] == []
    key = {"from_doc": "dishes.md", "kind": "related_to", "to_doc": "returns.md"}
    edge = {**key, "weight": 0.5}
    assert acme.put("/edges", json=edge).json() == {**edge, "declared": False}
    assert {**edge, "declared": False} in acme.get("/edges").json()["edges"]
    assert acme.delete("/edges", params=key).status_code == 200
    problem(acme.delete("/edges", params=key), 404, "edge_unknown")
    created = acme.put("/rejected", json={"text": "Склеить", "day": "2026-01-31"}).json()
    assert created in acme.get("/rejected").json()["rejected"]
    assert acme.delete(f"/rejected/{created['rejected_id']}").status_code == 200
    assert created not in acme.get("/rejected").json()["rejected"]


def test_lists_come_in_pages(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> None:
    others = [f"other {number:03}" for number in range(90)]
    article = {"doc_id": "many.md", "title": "Связи", "text": "Статья о связях.", "related_to": others}
    article |= {"implements": others, "rejected": others}
    assert ingest("acme", [article]).json()["errors"] == []
    for params in ({}, {"doc_id": "many.md"}):
        pages = [acme.get("/edges", params={**params, "limit": 100, "offset": at}).json()["edges"] for at in (0, 100)]
        known = {(edge["kind"], edge["to_doc"]) for page in pages for edge in page}
        assert len([key for key in known if key[1] in others]) == 180
        assert len(pages[0]) == 100
    first, second = (acme.get("/rejected", params={"limit": 45, "offset": at}).json()["rejected"] for at in (0, 45))
    assert len({one["rejected_id"] for one in (*first, *second)}) == 90
    assert acme.get("/agreements", params={"limit": 1}).json() == {"agreements": []}
    problem(acme.get("/edges", params={"limit": 501}), 422, "field_invalid")
