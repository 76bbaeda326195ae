"""Webhooks: signed for verification by receivers, retried under the same id, and independent of hanging ones."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from standardwebhooks import Webhook as Receiver
from standardwebhooks import WebhookVerificationError

from pipelines.ask.chats import outgoing
from pipelines.ask.chats.delivery import FAILURES, MAIL_WORKERS, TENANT_WORKERS, WORKERS, WebhookDelivery
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.chats import mail, outbox, store, webhooks
from tenants.chats.webhook_signing import OVERLAP, signed_headers
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tests.webhooks import SECONDS, receiving, wait_until


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(Tenant("acme", "anna")):
        Registry().add("acme")
        yield


def anywhere(address: str) -> bool:
    return True


def due(at: datetime | None = None) -> list[outbox.Delivery]:
    return list(outbox.claim(10, at))


def test_what_is_sent_verifies_and_names_the_event() -> None:
    with receiving() as received:
        webhook = webhooks.add(received.url, ["chat.message"])
        store.post(store.start().chat_id, "Где мой заказ?")
        (delivery,) = due()
        WebhookDelivery(permitted=anywhere).deliver(delivery)
    ((headers, body),) = received.requests
    verified = Receiver(webhook.secrets[0]).verify(body, headers)
    assert (verified["type"], verified["data"]["message"]["text"]) == ("chat.message", "Где мой заказ?")
    assert headers["webhook-id"] == delivery.delivery_id
    with pytest.raises(WebhookVerificationError):
        Receiver(webhook.secrets[0]).verify(body + b" ", headers)
    assert [one.state for one in outbox.latest()] == ["delivered"]


def test_a_retry_keeps_its_id_and_its_body() -> None:
    with receiving(status=503) as received:
        webhooks.add(received.url)
        store.start()
        sender = WebhookDelivery(permitted=anywhere)
        (first,) = due()
        sender.deliver(first)
        assert outbox.latest()[0].fault == "status 503"
        received.status = 204
        (again,) = due(datetime.now(UTC) + timedelta(seconds=outbox.RETRY_SECONDS[0] + 1))
        sender.deliver(again)
    (one, body), (other, same) = received.requests
    assert (one["webhook-id"], body) == (other["webhook-id"], same)
    assert [(one.state, one.attempts) for one in outbox.latest()] == [("delivered", 2)]


def test_after_a_rotation_both_secrets_verify_for_a_day() -> None:
    old = webhooks.add("https://shop.example/hook")
    new = webhooks.rotate(old.webhook_id)
    store.start()
    (delivery,) = due()
    headers = dict(signed_headers(delivery.delivery_id, delivery.body, webhooks.get(old.webhook_id).secrets))
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (old.secrets[0], new.secrets[0]):
        assert Receiver(secret).verify(delivery.body, headers)["type"] == "chat.started"
    earlier = datetime.now(UTC) - OVERLAP
    assert len(webhooks.rotate(old.webhook_id, earlier).secrets) == 2
    assert len(webhooks.get(old.webhook_id).secrets) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/hook", "http://localhost:1/", "http://169.254.169.254/latest"])
def test_an_address_inside_of_the_own_network_is_refused(url: str) -> None:
    webhooks.add(url)
    store.start()
    (delivery,) = due()
    WebhookDelivery().deliver(delivery)
    assert outbox.latest()[0].fault == "url_forbidden"


def sending(sender: WebhookDelivery, true: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that sends what is due, as the periodic task does, each time before it is checked."""

    def sent() -> bool:
        sender.start_due()
        return true()

    return sent


def test_tenant_with_many_hanging_receivers_delays_nobody() -> None:
    Registry().add("other")
    release = Event()
    with receiving(release=release) as hanging, receiving() as quick:
        for _ in range(webhooks.MAX_WEBHOOKS):
            webhooks.add(hanging.url)
        store.start()
        sender = WebhookDelivery(permitted=anywhere, seconds=SECONDS)
        wait_until(sending(sender, lambda: len(hanging.requests) == TENANT_WORKERS))
        with acting_as(Tenant("other", "boris")):
            webhooks.add(quick.url)
            store.start()
        wait_until(sending(sender, lambda: len(quick.requests) == 1))
        assert len(hanging.requests) == TENANT_WORKERS
        release.set()
        wait_until(sending(sender, lambda: len(hanging.requests) == webhooks.MAX_WEBHOOKS))
        sender.close()


def test_mail_server_that_does_not_answer_delays_no_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    sending_mail, release = list[str](), Event()

    def hang(delivery: outbox.Delivery) -> None:
        sending_mail.append(delivery.tenant_id)
        release.wait(SECONDS)

    monkeypatch.setattr(outgoing, "deliver", hang)
    monkeypatch.setenv("OPORA_SMTP_HOST", "127.0.0.1")
    get_settings.cache_clear()
    for number in range(WORKERS):
        tenant = Registry().add(f"shop-{number}")
        with acting_as(Tenant(tenant.tenant_id, "anna")), database.writing() as session:
            mail.enqueue_alert(session, "anna@shop.example", {})
    sender = WebhookDelivery(permitted=anywhere, seconds=SECONDS)
    wait_until(sending(sender, lambda: len(sending_mail) >= MAIL_WORKERS))
    with receiving() as quick:
        webhooks.add(quick.url)
        store.start()
        wait_until(sending(sender, lambda: len(quick.requests) == 1))
        assert len(sending_mail) == MAIL_WORKERS
        release.set()
        wait_until(sending(sender, lambda: len(sending_mail) == WORKERS))
    sender.close()


def test_receiver_that_does_not_answer_is_left_alone() -> None:
    release = Event()
    with receiving(release=release) as hanging, receiving() as quick:
        webhooks.add(hanging.url)
        webhooks.add(quick.url)
        sender = WebhookDelivery(permitted=anywhere, seconds=0.1, rest_seconds=SECONDS)
        for _ in range(FAILURES + 5):
            store.start()
        wait_until(sending(sender, lambda: len(quick.requests) == FAILURES + 5))
        wait_until(sending(sender, lambda: len([one for one in outbox.latest() if one.fault]) == FAILURES))
        Event().wait(0.3)
        assert len(hanging.requests) == FAILURES
        sender.close()


def test_receiver_is_tried_again_after_its_rest() -> None:
    release = Event()
    with receiving(release=release) as received:
        webhooks.add(received.url)
        sender = WebhookDelivery(permitted=anywhere, seconds=0.1, rest_seconds=1)
        for _ in range(FAILURES + 5):
            store.start()
        with closing(sender):
            wait_until(sending(sender, lambda: len(received.requests) >= FAILURES))
            release.set()
            wait_until(sending(sender, lambda: any(one.state == "delivered" for one in outbox.latest())))


def test_deliveries_go_with_their_webhook() -> None:
    webhook = webhooks.add("https://shop.example/hook")
    store.start()
    webhooks.remove(webhook.webhook_id)
    assert (webhooks.own(), outbox.latest()) == ((), ())
