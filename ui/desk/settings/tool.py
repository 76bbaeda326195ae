"""HTTP tools of the assistant: define, try with a question, disable, rotate secrets."""

import json
from asyncio import to_thread
from collections.abc import Container, Mapping

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines.routes import OpenRouter
from tenants.core.errors import Complaint, Invalid, InvalidFields, OporaError
from tenants.knowledge import tools
from tenants.knowledge.tools import Tool
from ui.api.tool import ToolTrial, tested
from ui.desk.rendering import Desk, or_again
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed

_TOOLS = f"{pages.ROOT}/tools"
_TOOL = f"{_TOOLS}/{{name}}"
_EXAMPLE = {"properties": {"number": {"type": "string", "pattern": r"\d{5,8}"}}, "required": ["number"]}


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_TOOLS)
    def show_tools(saved: pages.Saved = "") -> Response:
        return listed(saved=saved)

    @endpoints.post(_TOOLS)
    @or_again(lambda refused, form: listed(form, refused), Invalid)
    def add_tool(form: Typed) -> Response:
        added = tools.put(tools.parsed(_NEW.read(form)))
        return pages.saved(f"{_TOOLS}/{added.name}")

    def listed(form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        fault, fields = _NEW.shown({"parameters": _EXAMPLE, "timeout_seconds": 5}, form, refused, _faults)
        return pages.page(
            desk, "tools", "tools.html", refused, tools=tools.all(), fields=fields, fault=fault, saved=saved
        )

    @endpoints.get(_TOOL)
    def show_tool(name: str, saved: pages.Saved = "") -> Response:
        return page(tools.get(name), saved=saved)

    @endpoints.post(_TOOL)
    @or_again(lambda refused, name, form: page(tools.get(name), refused, form), Invalid)
    def save_tool(name: str, form: Typed) -> Response:
        stored = tools.get(name)
        tools.put(tools.parsed(_KNOWN.read(form) | {"name": name, "enabled": stored.enabled}))
        return pages.saved(f"{_TOOLS}/{name}")

    @endpoints.post(f"{_TOOL}/secrets")
    @or_again(lambda refused, name, **_: page(tools.get(name), refused), Invalid)
    def replace_secrets(name: str, form: Typed) -> Response:
        definition = tools.get(name).model_dump(mode="json", exclude={"headers"})
        tools.put(tools.parsed(definition | {"headers": _HEADERS.read(form)}))
        return pages.saved(f"{_TOOLS}/{name}", "secrets")

    @endpoints.post(f"{_TOOL}/test")
    async def try_tool(name: str, form: Typed) -> Response:
        question = forms.line(form, "question")[:2_000]
        tried = await tested(name, question)
        return await to_thread(lambda: page(tools.get(name), question=question, tried=tried))

    @endpoints.post(f"{_TOOL}/enable")
    def enable(name: str) -> Response:
        tools.set_enabled(name, enabled=True)
        return pages.saved(f"{_TOOLS}/{name}")

    @endpoints.post(f"{_TOOL}/disable")
    def disable(name: str) -> Response:
        tools.set_enabled(name, enabled=False)
        return pages.saved(f"{_TOOLS}/{name}")

    @endpoints.post(f"{_TOOL}/remove")
    def remove(name: str) -> Response:
        tools.remove(name)
        return pages.saved(_TOOLS, "removed")

    def page(
        tool: Tool,
        refused: OporaError | None = None,
        form: FormData | None = None,
        *,
        saved: str = "",
        question: str = "",
        tried: ToolTrial | None = None,
    ) -> Response:
        fault, fields = _KNOWN.shown(_values(tool), form, refused, _faults)
        if refused is not None and form is None:
            fault = " ".join(_faults(refused, ("headers",)).values())
        return pages.page(
            desk,
            "tools",
            "tool.html",
            refused,
            tool=tool,
            fields=fields,
            headers=", ".join(tool.secrets),
            secrets=_HEADERS,
            question=Field("question", value=question),
            tried=tried,
            tried_fault=forms.fault_text(tried.fault) if tried and tried.fault else "",
            arguments=json.dumps(tried.arguments, ensure_ascii=False) if tried else "",
            fault=fault,
            saved=saved,
        )

    return endpoints


def _faults(refused: OporaError, names: Container[str]) -> Mapping[str, str]:
    faults = forms.faults_of(refused, names)
    # Names of headers are part of the path, and their values are never shown.
    return {name: forms.fault_text("header_invalid") if name == "headers" else one for name, one in faults.items()}


def _values(tool: Tool) -> dict[str, object]:
    parameters = tool.parameters.model_dump(mode="json", exclude_defaults=True)
    return {**tool.model_dump(exclude={"headers"}), "parameters": parameters}


def _parameters(typed: str) -> object:
    try:
        parsed: object = json.loads(typed)
    except (ValueError, RecursionError) as broken:
        raise InvalidFields("tool_invalid", Complaint(("parameters",), "json_invalid")) from broken
    return parsed


def _headers(typed: str) -> dict[str, str]:
    pairs = [line.partition(":") for line in forms.lines(typed)]
    if not all(colon for _, colon, _ in pairs):
        raise InvalidFields("tool_invalid", Complaint(("headers",), "header_invalid"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _written(parameters: object) -> str:
    return json.dumps(parameters, ensure_ascii=False, indent=2)


_HEADERS = Field("headers", "lines", parse=_headers, shown_again=False)
"""Secrets of a tool. They are typed and never shown again."""

_INPUTS = (
    Field("title", required=True),
    Field("description", "area", required=True),
    Field("url", required=True),
    Field("parameters", "area", required=True, parse=_parameters, write=_written),
    Field("answer", "area"),
    Field("timeout_seconds", required=True, parse=forms.number),
)
_KNOWN = Form(*_INPUTS)
"""The name of a tool cannot change."""
_NEW = Form(Field("name", required=True), *_INPUTS, _HEADERS)
