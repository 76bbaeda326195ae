"""A model may choose a tool, but not invent its arguments."""

from collections.abc import Mapping

import pytest
from haystack import Document

from components.faults import collect_degraded
from components.models.failures import ModelFailed
from components.retrieve.tool_chooser import LlmToolChooser
from components.retrieve.tools import STEP, ToolSearch
from tenants.knowledge import tools
from tests.models import DOWN, Said, ScriptedModels

pytestmark = pytest.mark.usefixtures("terms")


NUMBER = {"type": "string", "pattern": r"\d{6}"}
CITY = {"type": "string", "enum": ["Тверь", "Клин"]}
ORDERS = tools.parsed(
    {
        "name": "orders",
        "title": "Заказы",
        "description": "Статус заказа",
        "url": "https://api.shop.example/orders",
        "parameters": {"properties": {"number": NUMBER, "city": CITY}, "required": ["number"]},
    }
)
ASKED = "Далеко ещё посылка 123456 до твери?"


def choice(tool: str = "orders", **arguments: str) -> dict[str, object]:
    return {"tool": tool, "arguments": [{"name": name, "value": value} for name, value in arguments.items()]}


def chosen(reply: Said) -> list[Mapping[str, object]]:
    return [one.arguments for one in LlmToolChooser(ScriptedModels(tools=reply)).choose(ASKED, (ORDERS,), "ru")]


def consult(search: ToolSearch, question: str = ASKED, adequacy: float = 0.0, attempt: int = 1) -> list[Document]:
    outputs = search.run(question=question, query=question, documents=[], adequacy=adequacy, attempt=attempt)
    documents: list[Document] = outputs["documents"]
    return documents


def test_chosen_arguments_must_stand_in_the_question() -> None:
    for reply, arguments in (
        (choice(number="123456"), {"number": "123456"}),
        (choice(number=" 123456 ", city="Тверь"), {"number": "123456", "city": "Тверь"}),
        (choice(""), None),
        (choice("unknown", number="123456"), None),
        (choice(city="Тверь"), None),
        (choice(number="654321"), None),
        (choice(number="12345"), None),
        (choice(number="посылка"), None),
        (choice(number=""), None),
        (choice(number="123456", city="Москва"), None),
        (choice(number="123456", other="посылка"), None),
    ):
        assert chosen(reply) == ([] if arguments is None else [arguments])


def test_the_prompt_describes_tools_without_their_secrets() -> None:
    models = ScriptedModels(tools=choice(""))
    secret = tools.parsed({**ORDERS.model_dump(exclude={"headers"}), "headers": {"x-key": "hidden"}})
    LlmToolChooser(models).choose(ASKED, (secret,), "ru")
    prompt = "\n".join(message.text or "" for message in models.messages[0])
    assert "orders: Заказы. Статус заказа" in prompt
    assert "- city?: string (Тверь | Клин)" in prompt
    assert "hidden" not in prompt
    assert "api.shop.example" not in prompt


def test_a_failing_chooser_degrades_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "all", lambda: (ORDERS,))
    with pytest.raises(ModelFailed):
        chosen(DOWN)
    with collect_degraded() as noted:
        assert consult(ToolSearch(LlmToolChooser(ScriptedModels(tools=DOWN)), min_fit=0.9)) == []
    assert list(noted) == [STEP]


def test_the_chooser_is_called_only_when_no_tool_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[tuple[tools.Tool, ...]] = [(ORDERS,)]
    monkeypatch.setattr(tools, "all", lambda: known[0])
    monkeypatch.setattr(ToolSearch, "_document", lambda _self, _lookup, _query: None)
    models = ScriptedModels(tools=choice(number="123456"))
    search = ToolSearch(LlmToolChooser(models))
    consult(search)
    assert models.asked == ["tools"]
    consult(search, "Статус заказа 123456")
    consult(search, "Далеко ещё посылка?", adequacy=0.9)
    consult(search, attempt=2)
    assert search.may_answer(ASKED, ASKED)
    known[0] = ()
    assert not search.may_answer(ASKED, ASKED)
    consult(search)
    assert models.asked == ["tools"]
