"""Uploads: how many of one tenant are written at once."""

import asyncio
from threading import Event, Lock

import pytest
from starlette.requests import Request
from starlette.types import Message

from pipelines.ingest import receiving
from tenants.core.context import Tenant
from tenants.core.errors import CallerError
from tenants.work.uploads import Upload


async def test_the_files_of_one_tenant_are_written_by_few_threads(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms of thousands of tiny files took all threads that look up sessions and chats."""
    go, two, lock, at_work = Event(), Event(), Lock(), [0, 0]

    def slow(_upload: Upload, _name: str) -> None:
        with lock:
            at_work[0] += 1
            at_work[1] = max(at_work)
            if at_work[0] == 2:
                two.set()
        go.wait(20)
        with lock:
            at_work[0] -= 1
        raise CallerError

    async def body() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    monkeypatch.setattr(Upload, "file", slow)
    scope = {"type": "http", "method": "POST", "headers": [], "query_string": b"name=a.md"}
    sent = [asyncio.create_task(receiving.receive(Request(scope, body))) for _ in range(6)]
    assert await asyncio.to_thread(two.wait, 20)
    go.set()
    results = await asyncio.gather(*sent, return_exceptions=True)
    assert all(isinstance(one, CallerError) for one in results)
    assert at_work == [0, 2]
