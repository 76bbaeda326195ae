"""Tools over HTTP: ownership, visible fields, and refusal of addresses in the private network."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.service.serving import problem
from tests.service.stored import tool_of

SECRET = "secret of acme"


@pytest.fixture
def admin(acme: httpx.Client, token: Callable[..., str]) -> Iterator[dict[str, str]]:
    yield {"Authorization": f"Bearer {token('acme', 'admin', 'ask')}"}
    acme.request("PUT", "/tools", json=tool_of("acme"), headers={"Authorization": f"Bearer {token('acme', 'admin')}"})


def test_a_tool_is_added_listed_without_secrets_and_removed(acme: httpx.Client, admin: dict[str, str]) -> None:
    put = acme.put("/tools", json=tool_of("acme"), headers=admin)
    assert put.json()["headers"] == ["authorization"]
    listed = acme.get("/tools", headers=admin)
    assert "orders-of-acme" in [tool["name"] for tool in listed.json()["tools"]]
    assert SECRET not in put.text + listed.text
    removed = acme.delete("/tools/orders-of-acme", headers=admin).json()
    assert "orders-of-acme" not in [tool["name"] for tool in removed["tools"]]
    problem(acme.delete("/tools/orders-of-acme", headers=admin), 404, "tool_unknown")


def test_a_tool_in_a_private_network_is_blocked_and_reported(acme: httpx.Client, admin: dict[str, str]) -> None:
    inside = tool_of("acme") | {"url": f"{acme.base_url}readyz"}
    assert acme.put("/tools", json=inside, headers=admin).is_success
    answer = acme.post("/ask/run", json={"question": "Где накладная 1234567?"}, headers=admin).json()
    assert (answer["outcome"], answer["meta"]["degraded"]) == ("refused", ["tools"])
    assert SECRET not in str(answer)
