"""`opora chat`, `opora site` and `opora webhook` in the terminal."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.chats import files, outbox, store
from tenants.chats.records import Chat, HandoffRequest
from tenants.core.context import Tenant, acting_as

VISITOR = Tenant("shop", "v:1")
NOBODY = "no-such-thing"


@pytest.fixture(autouse=True)
def _shop(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "200")
    get_settings.cache_clear()
    for tenant_id in ("shop", "other"):
        Registry().add(tenant_id)


@pytest.fixture
def chat() -> Chat:
    """A visitor's chat that waits for a person."""
    with acting_as(VISITOR):
        begun = store.start()
        store.post(begun.chat_id, "Где мой заказ?")
        file = files.add(begun.chat_id, "чек.pdf", "application/pdf", b"%PDF-")
        store.post(begun.chat_id, "", file_id=file.file_id, unread_reply="Файл принят.")
        handed = store.hand_over(begun.chat_id, HandoffRequest("user_request"))
    assert handed is not None
    return handed


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, [*arguments, "--tenant", "shop"])


def done(*arguments: str) -> str:
    result = opora(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_operator_works_from_the_terminal(chat: Chat) -> None:
    listed = json.loads(done("chat", "list", "--state", "queued", "--json"))
    assert [(one["chat_id"], one["reason"]) for one in listed] == [(chat.chat_id, "user_request")]
    listing = done("chat", "list")
    assert chat.chat_id in listing
    assert "the customer asked for a person" in listing
    assert json.loads(done("chat", "list", "--state", "human", "--json")) == []

    shown = done("chat", "show", chat.chat_id)
    assert "Где мой заказ?" in shown
    assert "File: чек.pdf" in shown or "Файл: чек.pdf" in shown

    assert json.loads(done("chat", "take", chat.chat_id, "--name", "Анна", "--json"))["assignee"] == "cli"
    replied = json.loads(done("chat", "reply", chat.chat_id, "Уже едет.", "--name", "Анна", "--json"))
    assert (replied["message"]["text"], replied["chat"]["state"]) == ("Уже едет.", "human")
    done("chat", "note", chat.chat_id, "постоянный клиент")
    assert "постоянный клиент" in done("chat", "show", chat.chat_id)
    with acting_as(VISITOR):
        assert [one.text for one in store.messages(chat.chat_id) if one.author == "operator"] == ["Уже едет."]

    steps = [
        (("transfer", "boris", "--name", "Борис"), "human"),
        (("snooze", "--hours", "1"), "snoozed"),
        (("resolve",), "resolved"),
        (("reopen",), "human"),
        (("hand-back",), "bot"),
    ]
    for (command, *more), state in steps:
        assert json.loads(done("chat", command, chat.chat_id, *more, "--json"))["state"] == state
    assert chat.chat_id in done("chat", "take", chat.chat_id)
    shown_chat = json.loads(done("chat", "show", chat.chat_id, "--json"))
    assert (shown_chat["chat"]["assignee"], len(shown_chat["messages"])) == ("cli", shown_chat["chat"]["last_seq"])


def test_what_is_not_there_or_cannot_be_is_said_in_one_line(chat: Chat) -> None:
    for command in ("show", "take", "hand-back", "snooze", "resolve", "reopen"):
        refused = opora("chat", command, NOBODY)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert len(refused.stderr.splitlines()) == 1
    refused = opora("chat", "list", "--state", "sleepy")
    assert refused.exit_code == 2
    assert "queued" in refused.stderr
    foreign = CliRunner().invoke(cli.app, ["chat", "show", chat.chat_id, "--tenant", "other"])
    assert foreign.exit_code == 2
    assert opora("chat", "reopen", chat.chat_id).exit_code == 2


def test_a_site_is_added_shown_rotated_and_removed(tmp_path: Path) -> None:
    config = tmp_path / "site.json"
    config.write_text(json.dumps({"locale": "en", "welcome": "Hello!", "files": False}), "utf-8")
    added = json.loads(
        done(
            "site",
            "add",
            "Shop",
            "--origin",
            "https://SHOP.example/",
            "--config",
            str(config),
            "--identified",
            "--json",
        )
    )
    key = added["key"]
    assert (added["origins"], added["config"]["welcome"]) == (["https://shop.example"], "Hello!")
    secret = added["identity_secret"]
    for shown in (done("site", "list", "--json"), done("site", "show", key, "--json"), done("site", "rotate", key)):
        assert key in shown
        assert secret not in shown
        assert "identity_secret" not in shown
    assert json.loads(done("site", "rotate", key, "--identity", "--revoke", "--json"))["identity_secret"] != secret
    assert "Shop" in done("site", "list")
    assert opora("site", "add", "Shop", "--origin", "shop.example/page").exit_code == 2
    config.write_text("{", "utf-8")
    assert opora("site", "add", "Shop", "--origin", "*", "--config", str(config)).exit_code == 2
    assert CliRunner().invoke(cli.app, ["site", "show", key, "--tenant", "other"]).exit_code == 2
    done("site", "remove", key)
    assert json.loads(done("site", "list", "--json")) == []


def test_a_webhook_is_added_rotated_watched_and_removed(chat: Chat) -> None:
    added = done("webhook", "add", "https://crm.example/hook", "--event", "chat.message")
    assert "whsec_" in added
    (row,) = json.loads(done("webhook", "list", "--json"))
    assert (row["url"], row["events"]) == ("https://crm.example/hook", ["chat.message"])
    assert "whsec_" not in done("webhook", "list")
    secret = next(word for word in added.split() if word.startswith("whsec_")).rstrip(".")
    rotated = done("webhook", "rotate", row["webhook_id"])
    assert "whsec_" in rotated
    assert secret not in rotated
    with acting_as(VISITOR):
        store.post(chat.chat_id, "Ещё вопрос")
        (delivery,) = outbox.latest()
        for _ in range(len(outbox.RETRY_SECONDS) + 1):
            outbox.settle(outbox.latest()[0], fault="status 500")
    (dead,) = json.loads(done("webhook", "deliveries", "--dead", "--json"))
    assert (dead["delivery_id"], dead["state"], dead["fault"]) == (delivery.delivery_id, "dead", "status 500")
    done("webhook", "redeliver", delivery.delivery_id)
    assert json.loads(done("webhook", "deliveries", "--dead", "--json")) == []
    assert "pending" in done("webhook", "deliveries")
    assert opora("webhook", "add", "https://crm.example", "--event", "chat.other").exit_code == 2
    for command in ("rotate", "redeliver", "remove"):
        assert opora("webhook", command, NOBODY).exit_code == 2
    done("webhook", "remove", row["webhook_id"])
    assert json.loads(done("webhook", "list", "--json")) == []
