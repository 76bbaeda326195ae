"""Two replicas on one PostgreSQL, Redis and Qdrant: work begun at one continues at the other."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import httpx
import pytest

from evaluation.benchmarks import replicas, server
from evaluation.benchmarks.replicas import ACME, Installation, Stores
from pipelines import background
from tenants.accounts import policy
from tenants.audit import search
from tenants.chats import conversation_memory
from tenants.chats.conversation_memory import PastTurn
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.desk import inbox
from tenants.desk.inbox import Filter
from tenants.privacy import persons, retention
from tenants.privacy.persons import Person
from tests import fake_qdrant
from tests.webhooks import wait_until

PATIENCE_SECONDS = 60.0
pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def stores(postgres_url: str, redis_url: str) -> Iterator[Stores]:
    """The servers; a fake replaces Qdrant's without `OPORA_TEST_QDRANT_URL`."""
    real = os.environ.get("OPORA_TEST_QDRANT_URL")
    with fake_qdrant.running() as fake:
        yield Stores(postgres_url, redis_url, real or fake)


@pytest.fixture(scope="module")
def installation(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("replicas")
    with replicas.sharing(stores, folder), replicas.serving(stores, folder) as running:
        yield running


@pytest.fixture(autouse=True)
def _in_force() -> None:
    """Apply the installation's settings during the module."""


@pytest.fixture
def client(installation: Installation) -> Iterator[httpx.Client]:
    with httpx.Client(headers={"Authorization": f"Bearer {installation.token}"}, timeout=PATIENCE_SECONDS) as client:
        yield client


def first_event(client: httpx.Client, url: str, question: str) -> str:
    """Begin a stream and leave after its first event; the event's id."""
    with client.stream("POST", f"{url}/ask/stream", json={"question": question}) as reply:
        assert reply.status_code == 200
        return next(line.removeprefix("id: ") for line in reply.iter_lines() if line.startswith("id: "))


def test_an_open_stream_continues_at_the_other_replica(installation: Installation, client: httpx.Client) -> None:
    first, second = installation.replicas
    question = "Что означает код E10?"
    last = first_event(client, first.url, question)
    reply = client.post(f"{second.url}/ask/stream", json={"question": question}, headers={"Last-Event-ID": last})
    assert reply.status_code == 200, reply.text
    ids = [line.removeprefix("id: ") for line in reply.text.splitlines() if line.startswith("id: ")]
    turn_id = last.rpartition(":")[0]
    assert ids == [f"{turn_id}:{number}" for number in range(2, len(ids) + 2)]
    assert "event: result" in reply.text
    assert reply.text.rstrip().splitlines()[-3:].count("event: done") <= 1
    assert "event: retract" not in reply.text
    # A request of another user does not get it, nor does another question.
    other = client.post(f"{second.url}/ask/stream", json={"question": "Другое?"}, headers={"Last-Event-ID": last})
    assert other.status_code in (200, 404)


def test_a_policy_changed_elsewhere_is_in_force_within_a_second(installation: Installation) -> None:
    headers = {"Authorization": f"Bearer {installation.limited}"}

    def refused() -> bool:
        codes = [
            httpx.post(f"{one.url}/ask/run", json={"question": "E10?"}, headers=headers, timeout=60).status_code
            for one in installation.replicas
        ]
        return codes == [429, 429]

    with acting_as(Tenant("limited", "test")):
        policy.change(rate_limit_per_minute=1)
        wait_until(refused)
        policy.change(rate_limit_per_minute=replicas.LIMIT)


def test_a_chat_is_answered_by_the_replica_that_its_reader_comes_to(
    installation: Installation, client: httpx.Client
) -> None:
    first, second = installation.replicas
    chat_id = client.post(f"{first.url}/chats", json={}).json().get("chat_id")
    assert chat_id
    message = {"text": "Что означает код E10?", "client_id": "m1"}
    assert client.post(f"{first.url}/chats/{chat_id}/messages", json=message).status_code == 202

    def authors() -> list[str]:
        return [one["author"] for one in client.get(f"{second.url}/chats/{chat_id}").json()["messages"]]

    wait_until(lambda: "bot" in authors())


def client_of(subject: str) -> httpx.Client:
    token = server.token_for(ACME, *SCOPES, subject=subject)
    return httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS)


def at_both(installation: Installation, send: Callable[[str, int], httpx.Response], count: int) -> list[int]:
    """Send requests to both replicas at once; the sorted codes of their responses."""
    with ThreadPoolExecutor(count) as pool:
        urls = [installation.replicas[number % 2].url for number in range(count)]
        return sorted(reply.status_code for reply in pool.map(send, urls, range(count)))


def test_gaps_asked_at_both_replicas_at_once_are_counted(installation: Installation, client: httpx.Client) -> None:
    first, second = installation.replicas
    question = "Когда откроется выставка орхидей?"

    def ask(url: str, number: int) -> httpx.Response:
        return client.post(f"{url}/ask/run", json={"question": question, "session_id": f"orchid-{number}"})

    def count(url: str, status: str) -> int:
        listed = client.get(f"{url}/gaps", params={"status": status, "text": "орхидей"}).json()["groups"]
        return sum(gap["count"] for group in listed for gap in group["gaps"])

    assert at_both(installation, ask, 12) == [200] * 12
    wait_until(lambda: count(first.url, "open") == count(second.url, "open") == 12)
    (group,) = client.get(f"{first.url}/gaps", params={"text": "орхидей"}).json()["groups"]
    gap_url = f"/gaps/{group['gaps'][0]['gap_id']}"

    def dismiss(url: str, _: int) -> httpx.Response:
        return client.patch(url + gap_url, json={"status": "dismissed"})

    assert at_both(installation, dismiss, 6) == [200] * 6
    assert [count(one.url, "dismissed") for one in (first, second)] == [12, 12]
    assert [count(one.url, "open") for one in (first, second)] == [0, 0]


def test_a_chat_is_listed_and_found_at_both_replicas_and_taken_once(
    installation: Installation, client: httpx.Client
) -> None:
    first, second = installation.replicas
    chat_id = client.post(f"{first.url}/chats", json={}).json()["chat_id"]
    message = {"text": "Где купить абрикосовый фильтр?", "client_id": "m1"}
    assert client.post(f"{first.url}/chats/{chat_id}/messages", json=message).status_code == 202
    assert client.post(f"{second.url}/chats/{chat_id}/person").is_success

    def listed(url: str) -> dict[str, Any]:
        (chat,) = [one for one in client.get(f"{url}/desk/chats").json() if one["chat_id"] == chat_id]
        return dict(chat)

    wait_until(lambda: listed(first.url)["state"] == listed(second.url)["state"] == "queued")
    version = listed(first.url)["version"]

    def take(url: str, number: int) -> httpx.Response:
        with client_of(f"operator-{number}") as operator:
            return operator.post(f"{url}/desk/chats/{chat_id}/take", json={"version": version, "name": "Ольга"})

    assert at_both(installation, take, 6) == [200] + [409] * 5
    assert listed(first.url) == listed(second.url)
    events = client.get(f"{second.url}/desk/chats/{chat_id}").json()["messages"]
    assert [one["body"].get("event") for one in events].count("joined") == 1
    with acting_as(Tenant(ACME, "anna")):
        assert [row.chat.chat_id for row in inbox.page("all", Filter("абрикосовый")).rows] == [chat_id]


def test_an_erasure_ends_a_stream_at_another_replica(installation: Installation) -> None:
    first, second = installation.replicas
    began, lines = Event(), list[str]()

    def follow(chat_id: str) -> None:
        with client_of("ivan") as reader, reader.stream("GET", f"{second.url}/chats/{chat_id}/events") as reply:
            for line in reply.iter_lines():
                lines.append(line)
                began.set()

    with client_of("ivan") as ivan, ThreadPoolExecutor(1) as pool:
        chat_id = ivan.post(f"{first.url}/chats", json={}).json()["chat_id"]
        following = pool.submit(follow, chat_id)
        assert began.wait(PATIENCE_SECONDS)
        with acting_as(Tenant(ACME, "admin")):
            persons.erase(Person(subject="ivan"))
        following.result(PATIENCE_SECONDS)
        assert "event: snapshot" in lines
        assert [ivan.get(f"{one.url}/chats/{chat_id}").status_code for one in (first, second)] == [404, 404]


def test_nothing_is_lost_or_done_twice_when_a_process_is_killed(installation: Installation) -> None:
    counts = replicas.run(installation, seconds=20, askers=6, kills=4)
    assert not any(getattr(counts, name) for name in replicas.FAULTS), counts
    assert counts.kills == 4
    assert counts.answered > 10
    assert counts.moved > 0
    assert counts.jobs > 0
    assert counts.messages > 0
    with acting_as(Tenant(ACME, "test")):
        assert search.verify().faults == ()


def test_retention_may_run_several_times_at_once(installation: Installation, caplog: pytest.LogCaptureFixture) -> None:
    later = datetime.now(UTC) + timedelta(days=4_000)
    with acting_as(Tenant(ACME, "olga")):
        for number in range(2 * retention.AT_ONCE):
            conversation_memory.remember(f"old {number}", PastTurn("Где?", "answered"))
    with ThreadPoolExecutor(4) as pool:
        for tidied in [pool.submit(background.tidy, Event(), later) for _ in range(4)]:
            tidied.result(PATIENCE_SECONDS)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    with acting_as(Tenant(ACME, "olga")):
        assert not any(conversation_memory.recall(f"old {number}") for number in range(2 * retention.AT_ONCE))
        assert search.verify().faults == ()
