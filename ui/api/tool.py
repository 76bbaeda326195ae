"""`/tools`: the HTTP tools that a tenant's assistant may call. The gate has checked token and tenant."""

from collections.abc import Iterable
from functools import partial
from time import perf_counter
from typing import Annotated

from pydantic import BaseModel, Field

from components.retrieve.tools import try_tool
from pipelines.pools import Pool
from pipelines.routes import OpenRouter
from tenants.core import context
from tenants.knowledge import tools
from tenants.knowledge.tools import Parameters, Tool

_TOOLS = "/tools"
_TOOL = "/tools/{name}"
_TESTS_OF_TENANT = 2
_TESTS = Pool("tool-test", 8)


class ToolChange(BaseModel, extra="forbid"):
    """Whether the assistant may call the tool."""

    enabled: bool


class ToolQuestion(BaseModel, extra="forbid"):
    """Sample question."""

    question: Annotated[str, Field(min_length=1, max_length=2_000)]


class ToolTrial(BaseModel):
    """Arguments found in the question, the tool's response and its duration.

    `fault` is the error code; empty if the call succeeded.
    """

    arguments: dict[str, object]
    text: str
    fault: str
    milliseconds: int


router = OpenRouter("admin", limit=100_000, tags=["tools"])


class ToolPart(BaseModel):
    """Tool in its public form, with only the names of its headers."""

    name: str
    title: str
    description: str
    url: str
    parameters: Parameters
    answer: str
    headers: tuple[str, ...]
    timeout_seconds: float
    enabled: bool


class ToolsAnswer(BaseModel):
    """A tenant's tools by name."""

    tools: tuple[ToolPart, ...]


@router.get(_TOOLS)
def list_tools() -> ToolsAnswer:
    """List all tools."""
    return tools_answer(tools.all())


@router.put(_TOOLS)
def put_tool(body: Tool) -> ToolPart:
    """Add a tool, or replace the one with the same name. If `headers` is omitted, the stored ones are kept."""
    return _part(tools.put(body))


@router.delete(_TOOL)
def remove_tool(name: str) -> ToolsAnswer:
    """Remove a tool; returns the remaining ones."""
    tools.remove(name)
    return tools_answer(tools.all())


@router.patch(_TOOL)
def change_tool(name: str, body: ToolChange) -> ToolPart:
    """Enable or disable a tool."""
    return _part(tools.set_enabled(name, enabled=body.enabled))


@router.post(f"{_TOOL}/test")
async def test_tool(name: str, body: ToolQuestion) -> ToolTrial:
    """Call the tool as a customer's question would. Returns 200 with a `fault` if the tool fails."""
    return await tested(name, body.question)


async def tested(name: str, question: str) -> ToolTrial:
    """Run `trial_of` in a separate thread. Raises `Busy` if the tenant is testing several tools already."""
    return await _TESTS.run({context.current().tenant_id: _TESTS_OF_TENANT}, partial(trial_of, name, question))


def trial_of(name: str, question: str) -> ToolTrial:
    """Return the tool's response to a sample question. Raises `NotFound` with the code `tool_unknown`."""
    tool, started = tools.get(name), perf_counter()
    tried = try_tool(tool, question)
    spent = round((perf_counter() - started) * 1_000)
    return ToolTrial(arguments=dict(tried.arguments), text=tried.text, fault=tried.fault, milliseconds=spent)


def tools_answer(stored: Iterable[Tool]) -> ToolsAnswer:
    return ToolsAnswer(tools=tuple(map(_part, stored)))


def _part(tool: Tool) -> ToolPart:
    return ToolPart(**tool.model_dump(exclude={"headers"}), headers=tuple(tool.headers or ()))
