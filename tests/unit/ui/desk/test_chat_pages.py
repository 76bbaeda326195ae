"""The pages of a chat at the desk."""

import pytest
import yaml
from starlette.responses import Response

from components.language.texts import LOCALES
from pipelines.ask.chats.conversations import Conversations
from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.core.context import COMMAND_LINE, Tenant, acting_as
from tests import desk
from ui.desk import chat, conversation
from ui.desk.view import names


class Dropping(Conversations):
    """Chats that remember which answers were let go."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def drop(self, chat_id: str) -> None:
        """Record the chat."""
        self.dropped.append(chat_id)


@pytest.mark.parametrize(("status", "dropped"), [(303, ["c"]), (409, []), (422, [])])
def test_what_was_refused_to_a_person_costs_the_customer_no_answer(status: int, dropped: list[str]) -> None:
    conversations = Dropping()
    chat._drop_if_done(conversations, "c", Response(status_code=status))
    assert conversations.dropped == dropped


def test_a_question_of_a_program_is_titled_as_such(installation: Settings) -> None:
    with acting_as(Tenant("acme", COMMAND_LINE)):
        Registry().add("acme")
        asked = desk.asked("acme", COMMAND_LINE, "Где заказ?")
        assert conversation.customer(asked, "en") == "API or command line"


def test_every_step_of_the_pipeline_has_a_name() -> None:
    steps = yaml.safe_load((ROOT / "pipelines" / "ask" / "ask.yaml").read_text(encoding="utf-8"))["components"]
    for locale in LOCALES:
        assert [step for step in steps if names(locale)("step", step) == step] == []
