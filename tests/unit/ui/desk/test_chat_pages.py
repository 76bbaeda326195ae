"""Views of chats and documents at the desk."""

from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from components.ingest.records import PROPERTIES
from components.language.texts import LOCALES, text
from pipelines.ask.chats.customer_chats import Conversations
from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core.context import COMMAND_LINE, Tenant, acting_as
from tenants.core.errors import Conflict, Invalid, OporaError, RateLimited, TryAgain
from tenants.desk import operator_sessions
from tenants.knowledge.document_edges import Edge
from tests import desk
from ui.desk import chat, chat_view
from ui.desk.document_view import TIES, DiffLine, difference, edge_between
from ui.desk.rendering import names


class Dropping(Conversations):
    """Chats that remember which answers were let go."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def drop(self, chat_id: str) -> None:
        """Record the chat."""
        self.dropped.append(chat_id)


@pytest.mark.parametrize(("error", "dropped"), [(None, ["c"]), (Conflict("taken"), []), (Invalid("taken"), [])])
async def test_what_was_refused_to_a_person_costs_the_customer_no_answer(
    error: OporaError | None, dropped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = Dropping()
    operator = SimpleNamespace(operator=SimpleNamespace(name="Ann"))
    monkeypatch.setattr(operator_sessions, "current", lambda: operator)
    monkeypatch.setattr(store, "take", Mock(side_effect=error))
    monkeypatch.setattr(chat, "_conversation", lambda *_, **__: Response(status_code=409))
    routes = chat.router(Mock(), conversations).routes
    take = next(one for one in routes if isinstance(one, APIRoute) and one.path.endswith("/take"))
    await take.endpoint(chat_id="c", version=1)
    assert conversations.dropped == dropped


@pytest.mark.parametrize("error", [RateLimited(60, "chats_full"), TryAgain("storage_full")])
@pytest.mark.parametrize("action", ["reply", "note"])
def test_a_message_without_room_keeps_its_text(error: OporaError, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[tuple[OporaError, str]]()

    def show(_desk: object, _chat_id: str, refused: OporaError, *, text: str) -> Response:
        shown.append((refused, text))
        return Response(status_code=refused.status)

    operator = SimpleNamespace(operator=SimpleNamespace(name="Ann"))
    monkeypatch.setattr(operator_sessions, "current", lambda: operator)
    monkeypatch.setattr(store, action, Mock(side_effect=error))
    monkeypatch.setattr(chat, "_conversation", show)
    api = FastAPI()
    api.include_router(chat.router(Mock(), Dropping()))
    TestClient(api).post(f"/desk/chat/c/{action}", data={"text": "Long answer"})
    assert shown == [(error, "Long answer")]


def test_a_question_of_a_program_is_titled_as_such(installation: Settings) -> None:
    with acting_as(Tenant("acme", COMMAND_LINE)):
        Registry().add("acme")
        asked = desk.asked("acme", COMMAND_LINE, "Где заказ?")
        assert chat_view.customer(asked, "en") == "API or command line"


def test_every_step_of_the_pipeline_has_a_name() -> None:
    steps = yaml.safe_load((ROOT / "pipelines" / "ask" / "ask.yaml").read_text(encoding="utf-8"))["components"]
    for locale in LOCALES:
        assert [step for step in steps if names(locale)("step", step) == step] == []


def test_a_difference_shows_what_changed_with_some_lines_around() -> None:
    old = "\n".join(f"строка {number}" for number in range(12))
    lines = difference(old, old.replace("строка 6", "новая"))
    assert lines == (
        DiffLine("gap"),
        DiffLine("same", "строка 4"),
        DiffLine("same", "строка 5"),
        DiffLine("removed", "строка 6"),
        DiffLine("added", "новая"),
        DiffLine("same", "строка 7"),
        DiffLine("same", "строка 8"),
    )
    assert difference(old, old) == ()
    assert difference("", "a") == (DiffLine("added", "a"),)


def test_texts_of_too_many_lines_are_not_compared() -> None:
    assert difference("x\n" * 1_100, "y\n" * 1_100) is None
    assert difference("x\n" * 1_000, "y\n" * 1_000) is not None


def test_a_long_text_with_few_changes_is_compared() -> None:
    old = "".join(f"строка {number}\n" for number in range(9_000))
    lines = difference(old, old.replace("строка 4000\n", "").replace("строка 4002\n", "новая\n"))
    assert lines is not None
    assert [line.text for line in lines if line.kind == "removed"] == ["строка 4000", "строка 4002"]
    assert [line.text for line in lines if line.kind == "added"] == ["новая"]
    assert (lines[0].kind, lines[-1].text, len(lines)) == ("gap", "строка 4004", 9)


@given(st.lists(st.sampled_from("абв"), max_size=9), st.lists(st.sampled_from("абв"), max_size=9))
def test_a_difference_has_every_change(before: list[str], after: list[str]) -> None:
    lines = difference("\n".join(before), "\n".join(after)) or ()
    gone, new = Counter(before), Counter(after)
    gone.subtract(line.text for line in lines if line.kind == "removed")
    new.subtract(line.text for line in lines if line.kind == "added")
    assert gone == new


def test_a_tie_is_the_edge_that_its_words_say() -> None:
    assert edge_between("a", "supersedes:out", "b", 1.0) == Edge("a", "supersedes", "b", 1.0)
    assert edge_between("a", "supersedes:in", "b", 0.5) == Edge("b", "supersedes", "a", 0.5)
    for locale in ("ru", "en"):
        assert all(text(f"desk.documents.tie.{choice}", locale) for choice in TIES)
        assert all(text(f"desk.documents.property.{name}", locale) for name in PROPERTIES)
