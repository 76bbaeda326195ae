"""Webhooks through the real service: two signatures, retries under one id, dead letters, receivers that hang."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import and_, update
from standardwebhooks import Webhook as Receiver

from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.chats import outbox, webhooks
from tenants.chats.outbox import Delivery
from tenants.chats.tables import OutboxRow
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tests.installations import installed
from tests.service.serving import Server, serving
from tests.webhooks import Received, receiving, wait_until


@dataclass(frozen=True)
class Shop:
    """A separate tenant for each test, in context, and a customer of it."""

    client: httpx.Client

    def begin(self) -> str:
        """Begin a chat, which causes an event."""
        response = self.client.post("/chats", json={})
        assert response.status_code == 201, response.text
        return str(response.json()["chat_id"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The data folder of a service that allows webhooks on this machine."""
    with installed(tmp_path_factory.mktemp("webhooks") / "data") as settings:
        yield settings


@pytest.fixture(autouse=True)
def _in_force(home: Settings) -> Settings:
    """Apply this module's settings instead of those of the folder's service."""
    return home


@pytest.fixture(scope="module")
def sending(home: Settings) -> Iterator[Server]:
    with serving({"OPORA_DATA_DIR": str(home.data_dir), "OPORA_TOOL_NETWORKS": "127.0.0.0/8"}) as server:
        yield server


@pytest.fixture
def shop(home: Settings, sending: Server) -> Iterator[Shop]:
    tenant_id = f"t{uuid4().hex}"
    Registry().add(tenant_id)
    headers = {"Authorization": f"Bearer {issue(home, tenant_id, scopes=('visit',), subject='v', ttl_seconds=3_600)}"}
    with (
        acting_as(Tenant(tenant_id, "anna")),
        httpx.Client(base_url=sending.url, timeout=60, headers=headers) as client,
    ):
        yield Shop(client)


def deliveries() -> list[tuple[str, int]]:
    return [(one.state, one.attempts) for one in outbox.latest()]


def ids(received: Received) -> list[str]:
    return [headers["webhook-id"] for headers, _ in received.requests]


def test_after_a_rotation_both_secrets_verify_what_is_sent(shop: Shop) -> None:
    with receiving() as received:
        old = webhooks.add(received.url)
        shop.begin()
        wait_until(lambda: len(received.requests) == 1)
        new = webhooks.rotate(old.webhook_id)
        shop.begin()
        wait_until(lambda: deliveries() == [("delivered", 1)] * 2)
    (before, first), (after, second) = received.requests
    assert Receiver(old.secrets[0]).verify(first, before)["type"] == "chat.started"
    assert before["webhook-signature"].count("v1,") == 1
    assert after["webhook-signature"].count("v1,") == 2
    for secret in (old.secrets[0], new.secrets[0]):
        assert Receiver(secret).verify(second, after)["type"] == "chat.started"


def test_a_retry_keeps_its_id_and_its_body(shop: Shop) -> None:
    with receiving(status=503) as received:
        webhooks.add(received.url)
        shop.begin()
        wait_until(lambda: len(received.requests) == 1)
        received.status = 204
        wait_until(lambda: [one.state for one in outbox.latest()] == ["delivered"])
    (first, body), (second, same) = received.requests
    assert (first["webhook-id"], body) == (second["webhook-id"], same)
    assert int(second["webhook-timestamp"]) >= int(first["webhook-timestamp"]) + outbox.RETRY_SECONDS[0]


def is_dead_at_last(delivery: Delivery) -> bool:
    """Whether the delivery has ended, after having it fail as if for more than a day. It may be in work meanwhile."""
    changed = {"attempts": len(outbox.RETRY_SECONDS), "next_at": datetime.now(UTC)}
    pending = and_(OutboxRow.delivery_id == delivery.delivery_id, OutboxRow.state == "pending")
    with database.across_tenants(write=True) as session:
        session.execute(update(OutboxRow).where(pending).values(**changed))
    return bool(outbox.latest(state="dead"))


def test_what_fails_for_more_than_a_day_is_dead_until_it_is_sent_again(shop: Shop) -> None:
    with receiving(status=500) as received:
        webhooks.add(received.url)
        shop.begin()
        (delivery,) = outbox.latest()
        wait_until(lambda: is_dead_at_last(delivery))
        assert outbox.latest(state="dead")[0].fault == "status 500"
        sent = len(received.requests)
        received.status = 200
        outbox.deliver_again(delivery.delivery_id)
        wait_until(lambda: deliveries() == [("delivered", 1)])
    assert set(ids(received)) == {delivery.delivery_id}
    assert len(received.requests) == sent + 1


def test_a_receiver_that_hangs_delays_nobody(shop: Shop) -> None:
    release = Event()
    with receiving(release=release) as hanging, receiving() as quick:
        webhooks.add(hanging.url)
        webhooks.add(quick.url)
        for _ in range(10):
            shop.begin()
        wait_until(lambda: len(quick.requests) == 10)
        assert len(hanging.requests) == 1
        assert shop.client.get("/healthz").status_code == 200
        release.set()
        wait_until(lambda: deliveries() == [("delivered", 1)] * 20)
    assert len(set(ids(hanging))) == len(set(ids(quick))) == 10


def test_private_addresses_are_refused_unless_they_are_allowed(shop: Shop) -> None:
    with receiving() as received:
        webhooks.add(received.url.replace("127.0.0.1", "10.0.0.1"))
        webhooks.add(received.url.replace("127.0.0.1", "[::1]"))
        webhooks.add("http://169.254.169.254/latest/meta-data")
        shop.begin()
        wait_until(lambda: [one.fault for one in outbox.latest()] == ["url_forbidden"] * 3)
    assert received.requests == []
