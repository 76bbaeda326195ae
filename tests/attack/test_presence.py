"""Many streams of one chat: a visitor's own, and those of many people."""

import asyncio
from collections import Counter
from contextlib import ExitStack

import httpx
import pytest

from pipelines.ask.chats import presence
from pipelines.ask.chats.presence import Presence
from settings import Settings
from tenants.chats.fanout import Announcement
from tenants.context import Tenant, acting_as
from tests.attack.attacking import VICTIM
from tests.attack.visiting import add_site, visitor_of
from tests.service.serving import Server, problem

READERS = 30


async def _announced(
    monkeypatch: pytest.MonkeyPatch, subjects: list[str], seconds: float
) -> tuple[list[Announcement], list[Presence]]:
    """What is announced while readers arrive at a chat, all of whom hear of everything."""
    said: list[Announcement] = []
    monkeypatch.setattr(presence, "announce_soon", said.append)
    readers: list[Presence] = []
    heard = 0
    for subject in subjects:
        with acting_as(Tenant(VICTIM, subject)):
            readers.append(Presence("c1", "operator", subject))
        readers[-1].arrive()
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until and len(said) < 10_000:
        new, heard = said[heard:], len(said)
        for reader in readers:
            list(reader.take(new))
        await asyncio.sleep(0.05)
    return said, readers


async def test_streams_of_one_person_are_announced_as_one(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, readers = await _announced(monkeypatch, ["anna"] * READERS, 1.3)
    assert 1 <= len(said) <= 3
    said.clear()
    for reader in readers[1:]:
        reader.leave()
    await asyncio.sleep(1.1)
    assert said == [], "one stream is left"
    readers[0].leave()
    await asyncio.sleep(1.1)
    assert [one.active for one in said] == [False]


async def test_roll_calls_are_answered_once_a_second(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    said, readers = await _announced(monkeypatch, [f"operator-{number}" for number in range(READERS)], 1.3)
    assert max(Counter(one.subject for one in said).values()) <= 3
    assert {len(reader.others) for reader in readers} == {READERS - 1}, "everybody sees everybody else"
    for reader in readers:
        reader.leave()
    await asyncio.sleep(1.1)


def test_a_visitor_has_so_many_streams_at_once(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_streams")
    with visitor_of(server, "site_streams") as visitor, ExitStack() as streams:
        chat = f"/chats/{visitor.post('/chats', json={}).json()['chat_id']}"

        def follow() -> httpx.Response:
            return streams.enter_context(visitor.stream("GET", f"{chat}/events"))

        opened = [follow() for _ in range(40)]
        followed = [one for one in opened if one.status_code == 200]
        assert 10 <= len(followed) <= 30
        refused = next(one for one in opened if one.status_code != 200)
        refused.read()
        problem(refused, 429, "rate_limited")
        followed[0].close()
        # Once one is gone another may begin.
        for _ in range(50):
            if (again := follow()).status_code == 200:
                break
        assert again.status_code == 200
