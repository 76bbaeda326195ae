"""Hayhooks as configured by Opora: an immutable host with fixed settings, a quiet log and no open routes by default."""

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from fastapi import FastAPI
from fastapi.routing import APIRoute
from hayhooks.server.pipelines.registry import ImmutablePipelineRegistry, PipelineRegistration
from hayhooks.server.routers import create_openai_router
from hayhooks.settings import settings as host_settings
from loguru import logger as host_log
from starlette.routing import Route as HostRoute

from pipelines import problems, request_bodies
from pipelines.ask.contract import AskRequest
from pipelines.ask.openai_chat import MODEL, ChatRequest
from pipelines.ingest.contract import IngestRequest
from pipelines.routes import Route
from settings import Settings
from tenants.core.errors import trail
from tenants.insight import traces
from ui.api.mcp_tool import PATH as MCP_PATH
from ui.api.mcp_tool import McpEndpoint, McpMessage

if TYPE_CHECKING:
    from loguru import Message

log = logging.getLogger("opora.service")

ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]


def configure_logging(settings: Settings) -> None:
    """Log one line per record to standard error, without payloads, variable values or exception texts."""
    handler = logging.StreamHandler(sys.stderr)
    plain = _OneLineFormatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else plain)
    handler.addFilter(_without_payload)
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    for name in ("haystack", "sqlalchemy", "alembic", "asyncio", "qdrant_client", "httpx", "mcp", "procrastinate"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _without_payload(record: logging.LogRecord) -> bool:
    """Replace a message of the MCP library, which quotes what a caller sent, by its place in the code.

    The library writes some messages to the root logger. Our own modules never do.
    """
    if record.name == "root" or record.name.partition(".")[0] == "mcp":
        record.msg, record.args = f"{record.module}:{record.lineno}", None
    return True


class _OneLineFormatter(logging.Formatter):
    def formatException(self, ei: ExceptionInfo | tuple[None, None, None]) -> str:  # noqa: N802
        return "" if ei[1] is None else trail(ei[1])

    def format(self, record: logging.LogRecord) -> str:
        # One line per record, so that input cannot forge a second record.
        return super().format(record).replace("\n", " ").replace("\r", " ")


class JsonFormatter(logging.Formatter):
    """Log one JSON object per line, with the request id and, for questions, the trace id.

    Like the plain line, without payloads or exception texts.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str] = {
            "time": f"{datetime.fromtimestamp(record.created, UTC):%FT%T.%fZ}",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fault = record.exc_info[1] if record.exc_info else None
        known = {"request_id": problems.caller.get().request_id, "trace_id": traces.current_id()}
        known["fault"] = trail(fault) if fault is not None else ""
        return json.dumps(line | {name: value for name, value in known.items() if value}, ensure_ascii=False)


def configure(settings: Settings) -> None:
    """Override what Hayhooks would take from the environment, and keep payloads out of its log."""
    host_settings.durable_mode = True
    host_settings.pipelines_dir = str(settings.pipelines_dir)
    host_settings.root_path = ""
    host_settings.additional_python_path = ""
    host_settings.show_tracebacks = False
    host_settings.chainlit_enabled = False
    host_settings.monitoring_enabled = False
    host_settings.tracing_enabled = False
    host_settings.tracing_include_haystack_spans = False
    host_settings.tracing_include_payload_values = False
    # Otherwise Hayhooks keeps spans in memory and sorts them on every request.
    host_settings.tracing_buffer_capacity = 1
    # No other origin has access at this point, so preflights are rejected.
    host_settings.cors_allow_origins = []
    host_settings.cors_allow_origin_regex = None
    host_settings.cors_allow_credentials = False
    # An empty list would select Hayhooks' default, which rewrites uvicorn's records.
    host_settings.intercepted_loggers = ["opora.intercepted"]
    host_log.remove()
    host_log.add(_log_host, level="WARNING", backtrace=False, diagnose=False)


def _log_host(message: "Message") -> None:
    # The message itself can quote caller input.
    record = message.record
    fault = record["exception"]
    reason = trail(fault.value) if fault is not None and fault.value is not None else "no exception"
    log.warning("%s:%d %s: %s", record["name"], record["line"], record["level"].name, reason)


def routes(settings: Settings) -> tuple[Route, ...]:
    """Return the open ones of Hayhooks' routes. MCP sessions are stateless and need no GET or DELETE."""
    limit = settings.max_body_bytes
    return (
        Route("POST", "/ask/run", scope="ask", body=AskRequest, limit=limit),
        Route("POST", "/ingest/run", scope="ingest", body=IngestRequest, limit=settings.max_upload_bytes),
        Route("GET", "/v1/models", scope="ask"),
        Route("POST", "/v1/chat/completions", scope="ask", body=ChatRequest, limit=limit),
        Route("POST", MCP_PATH, scope="ask", body=McpMessage, limit=limit, takes_turns=True),
    )


def offer_ask(app: FastAPI) -> McpEndpoint:
    """Keep only the pipeline endpoints of Hayhooks' routes; offer the ask pipeline alone as a model and as a tool.

    Hayhooks 2.1 lists every pipeline as a model, including those that cannot chat.
    """
    registry = app.state.pipeline_registry
    name = MODEL
    offered = ImmutablePipelineRegistry([PipelineRegistration(name, registry.get(name), registry.get_metadata(name))])
    own = [route for route in app.router.routes if isinstance(route, APIRoute)]
    app.router.routes[:] = own
    for route in own:
        request_bodies.reuse(route)
    app.include_router(create_openai_router(offered))
    endpoint = McpEndpoint(offered)
    app.router.routes.append(HostRoute(MCP_PATH, endpoint, methods=["POST"]))
    return endpoint
