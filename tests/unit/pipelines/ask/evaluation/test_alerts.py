"""A drop of the evaluation reaches the tenant's administrators by e-mail."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest

from pipelines.ask.chats.delivery import WebhookDelivery
from settings import Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import outbox
from tenants.core.context import Tenant, acting_as
from tenants.desk import evaluation_results, operators
from tests.mail_servers import MailServer, receiving_mail

LOSS = {"right": {"share": "right", "before": 0.92, "now": 0.8, "n": 100, "worse": 14, "better": 2, "chance": 0.002}}


@pytest.fixture
def server(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with receiving_mail() as running:
        for name, value in {"HOST": "127.0.0.1", "PORT": running.port, "TLS": "none", "FROM": "help@shop.ru"}.items():
            monkeypatch.setenv(f"OPORA_SMTP_{name}", str(value))
        get_settings.cache_clear()
        Registry().add("acme", name="Волна")
        with acting_as(Tenant("acme", "night")):
            yield running


def dropped(server: MailServer, loss: object = LOSS) -> Sequence[str]:
    evaluation_results.finish(evaluation_results.begin(100, nightly=True), {}, {}, loss)  # type: ignore[arg-type]
    while due := outbox.claim(10, datetime.now(UTC)):
        for delivery in due:
            WebhookDelivery().deliver(delivery)
    return [str(one["To"]) for one in server.received]


def test_administrators_with_an_address_are_told(server: MailServer) -> None:
    for login, role in (("anna@shop.ru", "admin"), ("boris", "admin"), ("vera@shop.ru", "operator")):
        operators.add(login, "correct horse 42", role=role)  # type: ignore[arg-type]
    assert dropped(server, None) == []
    assert dropped(server) == ["anna@shop.ru"]
    (message,) = server.received
    assert message["Auto-Submitted"] == "auto-generated"
    body = message.get_body(("plain",))
    assert body is not None
    words = body.get_content().replace("\u00a0", " ")
    assert "92 %" in words
    assert "80 %" in words
    assert "/desk/evaluation" in words


def test_the_policys_address_goes_first(server: MailServer) -> None:
    operators.add("anna@shop.ru", "correct horse 42", role="admin")
    policy.change(alert_email="qa@shop.ru")
    assert dropped(server) == ["qa@shop.ru"]


def test_at_most_one_alert_a_day_is_emailed(server: MailServer) -> None:
    policy.change(alert_email="qa@shop.ru")
    assert dropped(server) == dropped(server) == ["qa@shop.ru"]
