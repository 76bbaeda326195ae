"""A process that dies in a handoff leaves all of it behind or none: never a notice without its ticket."""

import subprocess
import sys

import pytest

from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.chats import outbox, store
from tenants.core.context import Tenant, acting_as
from tests.chats import all_tickets, webhook

SECONDS = 240


def left_behind(chat_id: str) -> str:
    """Return `nothing` or `all`; fail for any state between."""
    chat, messages = store.get(chat_id), store.messages(chat_id)
    opened = [one for one in all_tickets() if one.session_id == chat_id]
    sent = [one.event for one in outbox.of_chats([chat_id])]
    stored = (chat.state, len(opened), [one.author for one in messages], sorted(sent))
    if chat.state == "bot":
        assert stored == ("bot", 0, ["customer"], ["chat.message"])
        return "nothing"
    ticket_id = opened[0].ticket_id
    assert stored == (
        "queued",
        1,
        ["customer", "bot", "system"],
        ["chat.handoff", "chat.message", "chat.message", "chat.state"],
    )
    assert (chat.ticket_id, messages[2].body["ticket_id"]) == (ticket_id, ticket_id)
    assert ticket_id in messages[1].text
    return "all"


@pytest.mark.chaos
def test_a_handoff_is_stored_as_a_whole_or_not_at_all(records: Settings) -> None:
    Registry(records).add("acme")
    with acting_as(Tenant("acme", "anna")):
        webhook("chat.handoff", "chat.message", "chat.state")
        crashed = subprocess.run(
            [sys.executable, "-m", "tests.contract.handoff_crash"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            timeout=SECONDS,
            check=True,
            encoding="utf-8",
        )
        outcomes = [left_behind(chat_id) for chat_id in crashed.stdout.split()]
    # Before each statement and before the commit; the last one died when it was about to tell of it.
    assert len(outcomes) > 8
    assert outcomes == ["nothing"] * (len(outcomes) - 1) + ["all"]
