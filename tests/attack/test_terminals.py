"""Texts of customers in the terminal of an operator."""

import sys
from io import StringIO
from pathlib import Path

import pytest

import cli
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import VICTIM
from tests.service.serving import in_force

CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"
CONTROLS = f"{CLIPBOARD}\x1b[2J\x1b[6n\x9b31m\x1bP\x08\r"


class Screen(StringIO):
    """A terminal that remembers its output."""

    def isatty(self) -> bool:
        return True


def test_no_message_controls_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    installation = Settings(data_dir=tmp_path)
    Registry(installation).add(VICTIM)
    with in_force(installation):
        with acting_as(Tenant(VICTIM, "v:1")):
            chat = store.start()
            store.post(chat.chat_id, f"Где мой{CONTROLS} заказ?\nСрочно\x1b[31m!")
        monkeypatch.setattr(sys, "stdout", screen)
        cli.app(["chat", "show", chat.chat_id, "--tenant", VICTIM], standalone_mode=False)
    shown = screen.getvalue()
    assert "Где мой" in shown
    assert "Срочно\x1b[31m!" in shown
    assert shown.count("\x1b") == 1
    assert not set("\x07\x08\r\x9b") & set(shown)
