"""A tenant's tools: validation, ownership and secrecy of headers."""

import pytest

from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge import tools
from tenants.knowledge.tables import ToolRow
from tenants.knowledge.tools import Tool
from tenants.storage import database

ORDERS: dict[str, object] = {
    "name": "orders",
    "title": "Заказы",
    "description": "Статус заказа по номеру",
    "url": "https://api.shop.example/orders",
    "parameters": {"properties": {"number": {"type": "string", "pattern": r"\d{5,8}"}}, "required": ["number"]},
    "headers": {"Authorization": "Bearer secret-of-acme"},
}


def test_a_stored_tool_hides_its_secrets(acme: Tenant) -> None:
    assert tools.all() == ()
    stored = tools.put(tools.parsed(ORDERS))
    assert tools.all() == (stored,)
    assert stored.secrets == {"authorization": "Bearer secret-of-acme"}
    assert "secret-of-acme" not in stored.model_dump_json() + repr(stored)


def test_headers_stay_until_others_are_given(acme: Tenant) -> None:
    tools.put(tools.parsed(ORDERS))
    unsaid = {name: value for name, value in ORDERS.items() if name != "headers"}
    assert tools.put(tools.parsed({**unsaid, "title": "Мои заказы"})).secrets
    assert tools.all()[0].title == "Мои заказы"
    assert not tools.put(tools.parsed({**ORDERS, "headers": {}})).secrets


def test_a_changed_address_does_not_inherit_the_secret(acme: Tenant) -> None:
    tools.put(tools.parsed(ORDERS))
    unsaid = {name: value for name, value in ORDERS.items() if name != "headers"}
    assert not tools.put(tools.parsed({**unsaid, "url": "https://evil.example/orders"})).secrets


def test_tools_belong_to_one_tenant(acme: Tenant) -> None:
    tools.put(tools.parsed(ORDERS))
    with acting_as(Tenant("globex", "boris")):
        assert tools.all() == ()
        with pytest.raises(NotFound):
            tools.remove("orders")
    tools.remove("orders")
    assert tools.all() == ()


def test_the_number_of_tools_is_limited(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "MAX_TOOLS", 1)
    tools.put(tools.parsed(ORDERS))
    tools.put(tools.parsed(ORDERS))
    with pytest.raises(Invalid) as refused:
        tools.put(tools.parsed({**ORDERS, "name": "another"}))
    assert refused.value.code == "tools_too_many"


def argument(**schema: object) -> dict[str, object]:
    return {"parameters": {"properties": {"number": schema}}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Orders!"}, "name"),
        ({"description": " "}, "description"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://user:word@shop.example"}, "url"),
        ({"surprise": 1}, "surprise"),
        ({"timeout_seconds": 60}, "timeout_seconds"),
        ({"headers": {"Host": "other.example"}}, "headers"),
        ({"headers": {"X-Key": "a\r\nb"}}, "headers"),
        ({"headers": {"bad name": "a"}}, "headers.bad name.[key]"),
        ({"parameters": {"properties": {}, "required": ["number"]}}, "parameters"),
        (argument(type="object"), "parameters.properties.number.type"),
        (argument(type="string", pattern="["), "parameters.properties.number.pattern"),
        (argument(type="string", pattern=r"(a)\1"), "parameters.properties.number.pattern"),
        (argument(type="string", pattern=r"\w{1,99}" * 5 + "!"), "parameters.properties.number.pattern"),
        (argument(type="string", enum=[]), "parameters.properties.number.enum"),
    ],
)
def test_an_invalid_field_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        tools.parsed({**ORDERS, **changes})
    assert (refused.value.code, refused.value.params["field"]) == ("tool_invalid", field)
    assert refused.value.__cause__ is None


def test_a_stored_tool_that_is_no_longer_accepted_leaves_the_others(acme: Tenant) -> None:
    tools.put(tools.parsed(ORDERS))
    with database.writing() as session:
        definition = {**tools.parsed(ORDERS).model_dump(mode="json", exclude={"name", "headers"})}
        definition["parameters"]["properties"]["number"]["pattern"] = r"\d\Z"
        session.add(ToolRow(tenant_id=acme.tenant_id, name="older", definition=definition, headers={}))
    tools.put(tools.parsed({**ORDERS, "name": "newer"}))
    assert [tool.name for tool in tools.all()] == ["newer", "orders"]


def test_any_tool_round_trips(acme: Tenant) -> None:
    given = tools.parsed({**ORDERS, "answer": "Заказ {number}: {status}.", "timeout_seconds": 2.5})
    assert tools.put(given) == Tool.model_validate(given) == tools.all()[0]
