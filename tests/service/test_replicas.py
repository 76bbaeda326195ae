"""Two replicas on one PostgreSQL, Redis and Qdrant: work begun at one continues at the other."""

import os
from collections.abc import Iterator

import httpx
import pytest

from evaluation.benchmarks import replicas
from evaluation.benchmarks.replicas import ACME, Installation, Stores
from tenants.accounts import policy
from tenants.audit import search
from tenants.core.context import Tenant, acting_as
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
