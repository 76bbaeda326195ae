"""`POST /mcp`: the ask pipeline as a tool of the Model Context Protocol, served by Hayhooks' own MCP server.

Sessions are stateless, so any replica can answer each request for the tenant of the token.
"""

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hayhooks.server.pipelines.registry import ImmutablePipelineRegistry
from hayhooks.server.utils.mcp_utils import create_mcp_server, create_starlette_app
from mcp.types import (
    CallToolRequest,
    CallToolResult,
    ListToolsRequest,
    ListToolsResult,
    ServerResult,
    TextContent,
)
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from pipelines import problems
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.openai_chat import readable
from pipelines.fair_requests import give_up_turn
from tenants.core.errors import NotFound

PATH = "/mcp"

_List: TypeAlias = Callable[[ListToolsRequest], Awaitable[ServerResult]]
_Call: TypeAlias = Callable[[CallToolRequest], Awaitable[ServerResult]]


class McpMessage(BaseModel):
    """Message of JSON-RPC. The gate checks that it is an object, and how deep; the MCP server checks the rest."""


class McpEndpoint:
    """Hayhooks' MCP application, only at `/mcp`: by itself it also serves a status page and an older transport."""

    def __init__(self, registry: ImmutablePipelineRegistry) -> None:
        names = frozenset(registry.get_names())
        server = create_mcp_server("opora", registry=registry)
        handlers = server.request_handlers
        handlers[ListToolsRequest] = _listing(handlers[ListToolsRequest], names)
        handlers[CallToolRequest] = _calling(handlers[CallToolRequest], names)
        self.application: Starlette = create_starlette_app(server, json_response=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, always in JSON, whatever the client accepts."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"accept"]
        # Starlette mounts match only with a trailing slash, which clients do not send.
        inner = {**scope, "path": f"{PATH}/", "headers": [*headers, (b"accept", b"application/json")]}
        await self.application(inner, receive, send)


def _listing(inner: _List, names: frozenset[str]) -> _List:
    """List the pipelines only, once: Hayhooks adds its own tools that expose deployed pipelines."""
    listed: ServerResult | None = None

    async def list_tools(request: ListToolsRequest) -> ServerResult:
        nonlocal listed
        if listed is None:
            result = (await inner(request)).root
            if isinstance(result, ListToolsResult):
                result.tools = [tool for tool in result.tools if tool.name in names]
            listed = ServerResult(result)
        return listed

    return list_tools


def _calling(inner: _Call, names: frozenset[str]) -> _Call:
    """Answer with readable text and the whole object; Hayhooks 2.1 returns a tool's result only as text."""

    async def call_tool(request: CallToolRequest) -> ServerResult:
        if request.params.name not in names:
            return _outcome(str(problems.response(NotFound())))
        try:
            AskRequest.model_validate(request.params.arguments or {})
        except ValidationError as error:
            return _outcome(str(problems.response(problems.from_validation(error))))
        give_up_turn()  # it waits for a seat of the tenant's questions
        result = (await inner(request)).root
        content = result.content[0] if isinstance(result, CallToolResult) and not result.isError else None
        return _outcome(content.text) if isinstance(content, TextContent) else ServerResult(result)

    return call_tool


def _outcome(body: str) -> ServerResult:
    """Build the result of a call.

    :param body: the `turn.v1` object or a problem object.
    """
    structured = json.loads(body)
    failed = "schema" not in structured
    text = structured["detail"] if failed else readable(TurnAnswer.model_validate(structured))
    content = [TextContent(type="text", text=text)]
    return ServerResult(CallToolResult(content=[*content], structuredContent=structured, isError=failed))
