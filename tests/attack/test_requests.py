"""Requests that are made to break a route."""

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from pipelines.ingest import job_routes
from settings import Settings
from tenants.context import Tenant, acting_as
from tenants.errors import RateLimited
from tenants.tokens import issue
from tests.attack.attacking import ATTACKER
from tests.service.serving import problem


@pytest.mark.parametrize("path", ["/audit/export%0a", "/audit%0a", "/audit/export%00", "/documents/%1b"])
def test_a_path_with_control_characters_reaches_nothing(
    attacker: httpx.Client, installation: Settings, path: str
) -> None:
    token = issue(installation, ATTACKER, scopes=("operate",), subject="anna", ttl_seconds=600)
    response = attacker.get(path, headers={"Authorization": f"Bearer {token}"})
    problem(response, 404, "not_found")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/audit?before=9223372036854775808", 422),
        ("/audit?before=9223372036854775807", 200),
        ("/audit?since=0001-01-01", 200),
        ("/audit?since=0001-01-01T00:00:00%2B14:00", 422),
        ("/audit?until=9999-12-31T23:59:59-14:00", 422),
        ("/audit/export?since=0001-01-01", 200),
    ],
)
def test_a_date_or_number_out_of_range_is_no_fault_of_ours(attacker: httpx.Client, path: str, status: int) -> None:
    assert attacker.get(path).status_code == status


def test_files_of_the_service_are_its_owners(installation: Settings, answered: Callable[[], bool]) -> None:
    assert answered()
    index = [path for path in installation.data_dir.rglob("*") if path.is_file() and "opora.db" not in path.name]
    assert index
    assert not [path for path in index if path.stat().st_mode & 0o077]


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


def test_a_tenant_follows_so_many_jobs_at_once(attacker: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    service = FastAPI()
    service.include_router(job_routes.router())
    monkeypatch.setattr(job_routes, "MOST_FOLLOWED", 0)
    with acting_as(Tenant(ATTACKER, "anna")), pytest.raises(RateLimited), TestClient(service) as client:
        client.get("/jobs/any/events")
