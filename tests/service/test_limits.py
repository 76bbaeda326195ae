"""Asking too often, and asking the same thing twice."""

from collections.abc import Callable

import httpx

from tests.service.serving import problem

ASK = {"question": "Что означает код E20?"}


def test_a_rate_limited_person_is_told_when_to_retry(anybody: httpx.Client, token: Callable[..., str]) -> None:
    def send(subject: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token('hurried', 'ask', subject=subject)}"}
        return anybody.post("/ask/run", json=ASK, headers=headers)

    assert [send("anna").status_code for _ in range(3)] == [200, 200, 200]
    refused = send("anna")
    problem(refused, 429, "rate_limited")
    assert refused.headers["content-language"] == "en"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert send("boris").status_code == 200


def test_the_same_key_gets_the_same_answer(acme: httpx.Client) -> None:
    first, second = (acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-1"}) for _ in range(2))
    assert first.status_code == 200
    assert first.content == second.content
    assert acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-2"}).content != first.content


def test_a_key_belongs_to_one_request(acme: httpx.Client) -> None:
    assert acme.post("/ask/run", json=ASK, headers={"Idempotency-Key": "k-3"}).status_code == 200
    other = acme.post("/ask/run", json={**ASK, "locale": "en"}, headers={"Idempotency-Key": "k-3"})
    problem(other, 422, "idempotency_key_reused")
