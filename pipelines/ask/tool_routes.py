"""`/tools`: the HTTP tools that a tenant's assistant may call. The gate has checked token and tenant."""

from collections.abc import Iterable

from fastapi import APIRouter
from pydantic import BaseModel

from pipelines.gate import Route
from tenants import tools
from tenants.tools import Parameters, Tool

_TOOLS = "/tools"
_TOOL = "/tools/{name}"
_BODY_BYTES = 100_000
ROUTES = (
    Route("GET", _TOOLS, scope="admin"),
    Route("PUT", _TOOLS, scope="admin", body=Tool, limit=_BODY_BYTES),
    Route("DELETE", _TOOL, scope="admin"),
)

router = APIRouter(tags=["tools"])


class ToolPart(BaseModel):
    """A tool as callers see it: only the names of its headers."""

    name: str
    title: str
    description: str
    url: str
    parameters: Parameters
    answer: str
    headers: tuple[str, ...]
    timeout_seconds: float


class ToolsAnswer(BaseModel):
    """A tenant's tools by name."""

    tools: tuple[ToolPart, ...]


@router.get(_TOOLS)
def list_tools() -> ToolsAnswer:
    """All tools."""
    return tools_answer(tools.all())


@router.put(_TOOLS)
def put_tool(body: Tool) -> ToolPart:
    """Add a tool, or replace the one with the same name. Without `headers` the stored ones stay."""
    return _part(tools.put(body))


@router.delete(_TOOL)
def remove_tool(name: str) -> ToolsAnswer:
    """Remove a tool; returns the remaining ones."""
    tools.remove(name)
    return tools_answer(tools.all())


def tools_answer(stored: Iterable[Tool]) -> ToolsAnswer:
    """Tools as callers see them."""
    return ToolsAnswer(tools=tuple(map(_part, stored)))


def _part(tool: Tool) -> ToolPart:
    return ToolPart(**tool.model_dump(exclude={"headers"}), headers=tuple(tool.headers or ()))
