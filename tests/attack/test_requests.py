"""Malicious requests to single routes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from settings import ROOT, Settings
from tenants.access.tokens import issue
from tests.attack.attacking import ATTACKER, SlowTool, eventually
from tests.service.serving import Server, problem
from tests.service.stored import tool_of


@pytest.mark.parametrize("path", ["/audit/export%0a", "/audit%0a", "/audit/export%00", "/documents/%1b"])
def test_a_path_with_control_characters_reaches_nothing(
    attacker: httpx.Client, installation: Settings, path: str
) -> None:
    token = issue(installation, ATTACKER, scopes=("operate",), subject="anna", ttl_seconds=600)
    response = attacker.get(path, headers={"Authorization": f"Bearer {token}"})
    problem(response, 404, "not_found")


def test_files_are_their_owners(installation: Settings, answered: Callable[[], bool], tmp_path: Path) -> None:
    assert answered()
    add = [sys.executable, "-m", "cli", "tenant", "add", ATTACKER]
    subprocess.run(add, cwd=ROOT, env={**os.environ, "OPORA_DATA_DIR": str(tmp_path)}, umask=0o022, check=True)
    # The database of the attacked service was created by this process, not by a command under test.
    made = [path for path in installation.data_dir.rglob("*") if "opora.db" not in path.name]
    files = [path for path in (*made, *tmp_path.rglob("*")) if path.is_file()]
    assert {"opora.db", "edge_config.json"} <= {path.name for path in files}
    assert not [path for path in files if path.stat().st_mode & 0o077]


def test_a_long_event_number_is_none(attacker: httpx.Client) -> None:
    headers = {"Last-Event-ID": f"turn:{'9' * 5_000}"}
    problem(attacker.post("/ask/stream", json={"question": "Где?"}, headers=headers), 404, "stream_unknown")


def test_one_bad_number_does_not_spoil_the_other_files(attacker: httpx.Client, answered: Callable[[], bool]) -> None:
    files = [
        ("files", ("nan.md", b"---\nweight: .nan\n---\n# A\n\nText.\n")),
        ("files", ("good.md", b"# B\n\nGood text.\n")),
    ]
    job = attacker.post("/documents", files=files).json()
    with attacker.stream("GET", f"/jobs/{job['job_id']}/events", headers={"Last-Event-ID": "9" * 5_000}) as events:
        assert any(line.startswith("event: done") for line in events.iter_lines())
    report = attacker.get(f"/jobs/{job['job_id']}").json()["report"]
    assert (report["added"], [error["code"] for error in report["errors"]]) == (1, ["metadata_invalid"])
    assert answered()


def test_a_changed_address_is_not_sent_the_secret(attacker: httpx.Client, slow_tool: SlowTool) -> None:
    """Changing a tool's address must not send its secret to the new address."""
    slow_tool.go.set()

    def ask_tool(number: int, **changes: object) -> None:
        tool = {name: value for name, value in tool_of(ATTACKER).items() if name != "headers"}
        put = attacker.put("/tools", json=tool | {"url": slow_tool.url} | changes)
        assert put.is_success
        assert "едет" in attacker.post("/ask/run", json={"question": f"Где накладная {number}?"}).text

    ask_tool(7_654_321, headers={"authorization": "secret"})
    ask_tool(7_654_322, description="Где накладная с этим номером")
    ask_tool(7_654_323, url=f"{slow_tool.url}elsewhere")
    assert slow_tool.secrets == ["secret", "secret", None]


def test_nested_json_is_the_callers_mistake(attacker: httpx.Client) -> None:
    nested = b'{"a":' * 2_000 + b"1" + b"}" * 2_000
    problem(attacker.post("/mcp", content=nested, headers={"Content-Type": "application/json"}), 400, "malformed_body")


@pytest.mark.parametrize(
    "sent",
    [
        {"id": 1, "result": {"text": "Lavender"}},
        {"id": "Lavender", "result": {}},
        {"id": 1, "method": "Lavender"},
        {"id": 1, "method": "tools/call", "params": {"name": ["Lavender"]}},
        {"method": "notifications/progress", "params": {"progressToken": ["Lavender"]}},
    ],
    ids=["result", "id", "method", "request", "notification"],
)
def test_messages_of_mcp_are_not_logged(attacker: httpx.Client, server: Server, sent: dict[str, object]) -> None:
    before = len(server.log)
    for _ in range(10):
        assert attacker.post("/mcp", json={"jsonrpc": "2.0", **sent}).status_code < 500
    attacker.get("/healthz")
    assert eventually(lambda: any("GET /healthz" in line for line in server.log[before:]))
    assert "Lavender" not in "".join(server.log[before:])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/playground", {"question": " "}),
        ("POST", "/playground", {"question": "E20?", "locale": "x"}),
        ("PATCH", "/documents/errors.md", {"version": 2**63}),
    ],
)
def test_a_value_out_of_range_is_the_callers_mistake(
    attacker: httpx.Client, method: str, path: str, body: dict[str, object]
) -> None:
    assert attacker.request(method, path, json=body).status_code == 422


@pytest.mark.parametrize(
    ("question", "code"), [("\u200b\ufeff", "question_empty"), ("\u0958" * 2_000, "question_too_long")]
)
def test_an_evaluation_question_that_cannot_be_asked_is_refused(
    attacker: httpx.Client, question: str, code: str
) -> None:
    added = attacker.post("/evaluation/questions", json={"questions": [{"question": question, "refused": True}]})
    problem(added, 422, code)


def test_a_tenant_chooses_no_site_key(attacker: httpx.Client) -> None:
    """A removed site's key may still be in its shop's pages: another tenant must not receive their visitors."""
    problem(attacker.post("/sites", json={"name": "Shop", "key": "demo-ru"}), 422, "unknown_field")
