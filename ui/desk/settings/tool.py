"""HTTP tools of the assistant: define, try with a question, disable, rotate secrets."""

import json
from asyncio import to_thread
from collections.abc import Mapping

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines import problems
from pipelines.routes import OpenRouter
from tenants.core.errors import Invalid
from tenants.knowledge import tools
from tenants.knowledge.tools import Tool
from ui.api.tool import ToolTrial, tested
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.view import Desk

_TOOLS, _TOOL = "/tools", "/tools/{name}"
_ACTS = ("secrets", "test", "enable", "disable", "remove")
_AREAS = ("description", "parameters", "answer")
_NAMES = ("name", "title", "description", "url", "parameters", "answer", "timeout_seconds")
_EXAMPLE = {"properties": {"number": {"type": "string", "pattern": r"\d{5,8}"}}, "required": ["number"]}


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)
    _add_list(endpoints, desk)
    _add_tool(endpoints, desk)
    return endpoints


def _add_list(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _TOOLS)
    def show_tools(saved: pages.Saved = "") -> Response:
        return listed(_fields({"parameters": _written(_EXAMPLE), "timeout_seconds": "5"}, new=True), saved=saved)

    @endpoints.post(pages.ROOT + _TOOLS)
    def add_tool(form: Typed) -> Response:
        try:
            added = tools.put(tools.parsed(_definition(form) | {"headers": _headers(form)}))
        except Invalid as refused:
            typed = _typed(form, new=True)
            faults = _faults(refused, typed)
            fault = forms.unplaced(typed, faults)
            return listed(forms.with_faults(typed, faults), fault=fault, status=422)
        return pages.saved(f"{pages.ROOT}{_TOOLS}/{added.name}")

    def listed(fields: Fields, *, fault: str = "", saved: str = "", status: int = 200) -> Response:
        return pages.page(
            desk, "tools", "tools.html", status, tools=tools.all(), fields=fields, fault=fault, saved=saved
        )


def _add_tool(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _TOOL)
    def show_tool(name: str, saved: pages.Saved = "") -> Response:
        return page(tools.get(name), saved=saved)

    @endpoints.post(pages.ROOT + _TOOL)
    def save_tool(name: str, form: Typed) -> Response:
        stored = tools.get(name)
        try:
            tools.put(tools.parsed(_definition(form) | {"name": name, "enabled": stored.enabled}))
        except Invalid as refused:
            typed = _typed(form)
            faults = _faults(refused, typed)
            return page(stored, forms.with_faults(typed, faults), forms.unplaced(typed, faults))
        return pages.saved(f"{pages.ROOT}{_TOOLS}/{name}")

    @endpoints.post(f"{pages.ROOT}{_TOOL}/secrets")
    def replace_secrets(name: str, form: Typed) -> Response:
        stored = tools.get(name)
        try:
            definition = stored.model_dump(mode="json", exclude={"headers"})
            tools.put(tools.parsed(definition | {"headers": _headers(form)}))
        except Invalid as refused:
            faults = _faults(refused, (Field("headers", "lines"),))
            return page(stored, fault=" ".join(faults.values()))
        return pages.saved(f"{pages.ROOT}{_TOOLS}/{name}", "secrets")

    @endpoints.post(f"{pages.ROOT}{_TOOL}/test")
    async def try_tool(name: str, form: Typed) -> Response:
        stored, question = await to_thread(tools.get, name), forms.line(form, "question")[:2_000]
        tried = await tested(stored, question)
        return await to_thread(page, stored, question=question, tried=tried)

    @endpoints.post(f"{pages.ROOT}{_TOOL}/enable")
    def enable(name: str) -> Response:
        tools.set_enabled(name, enabled=True)
        return pages.saved(f"{pages.ROOT}{_TOOLS}/{name}")

    @endpoints.post(f"{pages.ROOT}{_TOOL}/disable")
    def disable(name: str) -> Response:
        tools.set_enabled(name, enabled=False)
        return pages.saved(f"{pages.ROOT}{_TOOLS}/{name}")

    @endpoints.post(f"{pages.ROOT}{_TOOL}/remove")
    def remove(name: str) -> Response:
        tools.remove(name)
        return pages.saved(pages.ROOT + _TOOLS, "removed")

    def page(
        tool: Tool,
        fields: Fields = (),
        fault: str = "",
        *,
        saved: str = "",
        question: str = "",
        tried: ToolTrial | None = None,
    ) -> Response:
        return pages.page(
            desk,
            "tools",
            "tool.html",
            422 if fields or fault else 200,
            tool=tool,
            fields=fields or _stored(tool),
            headers=", ".join(tool.secrets),
            secrets=Field("headers", "lines"),
            question=Field("question", "text", question),
            tried=tried,
            tried_fault=forms.fault_text(tried.fault) if tried and tried.fault else "",
            arguments=json.dumps(tried.arguments, ensure_ascii=False) if tried else "",
            fault=fault,
            saved=saved,
        )


def _faults(refused: Invalid, fields: Fields) -> Mapping[str, str]:
    """A definition holds secrets, so report only the field's name."""
    field = str(refused.params.get("field", "")).partition(".")[0]
    if field not in {one.name for one in fields}:
        return {field: problems.explained(refused)[1]}
    special = {"parameters": "json_invalid", "headers": "header_invalid"}.get(field, "tool_invalid")
    return {field: forms.fault_text(special)}


def _definition(form: FormData) -> dict[str, object]:
    return {
        "name": forms.line(form, "name"),
        "title": forms.line(form, "title"),
        "description": forms.area(form, "description"),
        "url": forms.line(form, "url"),
        "parameters": _parameters(form),
        "answer": forms.area(form, "answer"),
        "timeout_seconds": forms.number(forms.line(form, "timeout_seconds")),
    }


def _parameters(form: FormData) -> object:
    try:
        parsed: object = json.loads(forms.area(form, "parameters"))
    except (ValueError, RecursionError) as broken:
        raise Invalid("tool_invalid", field="parameters") from broken
    return parsed


def _headers(form: FormData) -> dict[str, str]:
    pairs = [line.partition(":") for line in forms.lines(forms.area(form, "headers"))]
    if not all(colon for _, colon, _ in pairs):
        raise Invalid("tool_invalid", field="headers")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _stored(tool: Tool) -> Fields:
    parameters = tool.parameters.model_dump(mode="json", exclude_defaults=True)
    return _fields(
        {
            "title": tool.title,
            "description": tool.description,
            "url": tool.url,
            "parameters": _written(parameters),
            "answer": tool.answer,
            "timeout_seconds": forms.number(str(tool.timeout_seconds)),
        }
    )


def _typed(form: FormData, *, new: bool = False) -> Fields:
    typed = {name: forms.area(form, name) if name in _AREAS else forms.line(form, name) for name in _NAMES}
    return _fields(typed, new=new)


def _fields(values: Mapping[str, str], *, new: bool = False) -> Fields:
    """Return the fields of a tool. Its name cannot change; its secrets are typed and never shown again."""
    known = tuple(
        Field(name, "area" if name in _AREAS else "text", values.get(name, ""), required=name != "answer")
        for name in _NAMES
        if new or name != "name"
    )
    return (*known, Field("headers", "lines")) if new else known


def _written(parameters: object) -> str:
    return json.dumps(parameters, ensure_ascii=False, indent=2)
