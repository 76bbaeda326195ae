"""Malicious and unexpected input gets a typed 4xx with an instruction, or a proper answer."""

import httpx
import pytest

from tests.service.serving import problem


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
