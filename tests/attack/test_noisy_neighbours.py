"""Effects of one tenant on the questions of another."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx

from tests.attack.attacking import PATIENCE_SECONDS, SlowTool
from tests.service.stored import tool_of


def test_a_slow_tool_holds_nobody_elses_question(
    attacker: httpx.Client, slow_tool: SlowTool, answered: Callable[[], bool]
) -> None:
    slow = tool_of("mallory") | {"url": slow_tool.url, "timeout_seconds": 20}
    assert attacker.put("/tools", json=slow).is_success
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(attacker.post, "/ask/run", json={"question": f"Где накладная {1_234_560 + number}?"})
            for number in range(4)
        ]
        for _ in range(4):
            assert slow_tool.called.acquire(timeout=PATIENCE_SECONDS)
            assert answered()
        assert not any(turn.done() for turn in asked)
        slow_tool.go.set()
        assert all("едет" in turn.result().text for turn in asked)


def test_a_costly_ingest_holds_nobody_elses(
    attacker: httpx.Client, victim: httpx.Client, answered: Callable[[], bool]
) -> None:
    letters = [{"doc_id": f"letters-{number}", "text": "А. " * 16_000} for number in range(40)]
    pages = [{"doc_id": f"page-{number}", "text": "Возврат занимает 14 дней. " * 200} for number in range(10)]
    with ThreadPoolExecutor(1) as pool:
        costly = pool.submit(attacker.post, "/ingest/run", json={"documents": letters}, timeout=280)
        Event().wait(1)  # the costly one is under way
        assert victim.post("/ingest/run", json={"documents": pages}).json()["added"] == 10
        assert answered()
        assert not costly.done()
        assert costly.result().is_success
