"""Malicious and unexpected input gets a typed 4xx with an instruction, or a proper answer."""

import httpx
import pytest

from tests.service.serving import problem

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "field_missing"),
        ({"question": ""}, "question_empty"),
        ({"question": "я" * 2_001}, "question_too_long"),
        ({"question": "q", "qualty": "quick"}, "unknown_field"),
        ({"question": "q", "locale": "ru; DROP"}, "field_invalid"),
        ({"question": "q", "filters": {"colour": ["red"]}}, "unknown_filter"),
    ],
)
def test_fields(acme: httpx.Client, fields: dict[str, object], code: str) -> None:
    body = problem(acme.post("/ask/run", json=fields), 422, code)
    assert isinstance(body["errors"], list)
    assert body["errors"][0]["code"] == code


def test_a_body_that_is_deeply_nested_or_over_the_limit(acme: httpx.Client) -> None:
    """`tests/unit/pipelines/test_gate.py` has the other ways in which a body can be unreadable."""
    problem(acme.post("/ask/run", content=b'{"question": ' + b"[" * 1_000, headers=JSON), 400, "malformed_body")
    problem(acme.post("/ask/run", content=b" " * 1_000_001, headers=JSON), 413, "body_too_large")


def test_a_question_of_exactly_the_limit(acme: httpx.Client) -> None:
    response = acme.post("/ask/run", json={"question": f"  {'код E20 ' * 250}"[:2_002]})
    assert response.status_code == 200


def test_a_body_of_articles_may_be_larger_than_a_question(acme: httpx.Client) -> None:
    documents = [{"doc_id": "long.md", "title": "", "text": "word " * 1_000, "note": "я" * 600_000}]
    assert acme.post("/ingest/run", json={"documents": documents}).status_code != 413


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "field_missing"),
        ({"documents": []}, "field_invalid"),
        ({"documents": {}}, "field_invalid"),
        ({"documents": ["text"]}, "field_invalid"),
        ({"documents": [{"title": "t", "text": "x"}]}, "field_missing"),
        ({"documents": [{"doc_id": "", "text": "x"}]}, "field_invalid"),
        ({"documents": [{"doc_id": "a"}]}, "field_missing"),
        ({"documents": [{"doc_id": "a", "text": "x", "lang": "klingon"}]}, "field_invalid"),
        ({"documents": [{"doc_id": "a", "text": "x"}], "collection": "globex"}, "unknown_field"),
    ],
)
def test_articles(acme: httpx.Client, body: dict[str, object], code: str) -> None:
    problem(acme.post("/ingest/run", json=body), 422, code)


def test_an_empty_filter_list_matches_nothing(acme: httpx.Client) -> None:
    question = {"question": "Что означает код E20?"}
    assert acme.post("/ask/run", json=question).json()["outcome"] == "answered"
    for name in ("project_keys", "tags", "source_types", "evidence_tiers", "statuses", "doc_ids"):
        answer = acme.post("/ask/run", json={**question, "filters": {name: []}}).json()
        assert answer["outcome"] != "answered"
        assert answer["meta"]["chunks"]["retrieved"] == 0
        assert answer["meta"]["filters"] == {name: []}
