"""An index is rebuilt, switched and rolled back while questions are asked: no question notices."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx

from evaluation.benchmarks.load import Reply, ask_sequentially
from tests.service.serving import Server

QUESTIONS = (
    "Что значит код E20?",
    "Вода не поступает, код E10",
    "Сколько дней на возврат товара?",
    "Кто открыл Америку?",
)
ROUNDS = 3


def test_questions_do_not_notice_a_generation_switch(
    server: Server, acme: httpx.Client, token: Callable[..., str]
) -> None:
    asking = token("acme", "ask")
    operator = {"Authorization": f"Bearer {token('acme', 'ingest', 'operate', 'admin')}"}
    before = [reply.outcome for reply in ask_sequentially(server.port, asking, QUESTIONS)]
    enough = Event()

    def crowd() -> list[list[Reply]]:
        replies = []
        while not enough.is_set():
            replies.append(ask_sequentially(server.port, asking, QUESTIONS))
        return replies

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(crowd) for _ in range(2)]
        try:
            ends = [_end(acme, operator, kind) for _ in range(ROUNDS) for kind in ("rebuild", "rollback")]
        finally:
            enough.set()
    rounds = [[reply.outcome for reply in replies] for item in asked for replies in item.result()]
    assert ends == ["done"] * 2 * ROUNDS
    assert len(rounds) >= ROUNDS
    assert [outcomes for outcomes in rounds if outcomes != before] == []


def _end(client: httpx.Client, operator: dict[str, str], kind: str) -> str:
    """Return the final state of the job, when its events end."""
    job_id = client.post(f"/index/{kind}", headers=operator).raise_for_status().json()["job_id"]
    with client.stream("GET", f"/jobs/{job_id}/events", headers=operator) as stream:
        jobs = [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: ")]
    return str(jobs[-1]["state"])
