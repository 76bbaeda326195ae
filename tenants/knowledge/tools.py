"""HTTP tools that a tenant's assistant may call, each described for people and by a JSON schema.

Headers of a tool hold its secrets. They are stored here, sent to the tool only, and never shown again.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from sqlalchemy import select

from tenants.accounts import registry, settings_history
from tenants.core.patterns import compiled
from tenants.core.validation import FrozenModel, validated
from tenants.knowledge.tables import ToolRow
from tenants.storage import database
from tenants.storage.cache import TenantCache

log = logging.getLogger("opora.tools")

MAX_TOOLS = 50
ORIGIN = "tool:"
"""Prefix of the ids under which answers of tools are cited, as if each tool were a document."""

NAME = r"^[a-z][a-z0-9_-]{0,63}$"

Short: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Header: TypeAlias = Annotated[str, StringConstraints(to_lower=True, pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
_Url: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@\\]+$", max_length=2_000)]

# These headers control the destination and the length of a message.
_RESERVED = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "content-type"})
_SECRET = re.compile(r"[\x20-\x7e]{1,4000}")
_MAX_PATTERN_LENGTH = 100


class Property(FrozenModel):
    """An argument in terms of JSON schema. `pattern` or `enum` locates it in a question; a string with neither is the
    whole question."""

    type: Literal["string", "integer", "number"]
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_PATTERN_LENGTH)] | None = None
    enum: Annotated[tuple[Short, ...], Field(min_length=1, max_length=50)] | None = None

    @field_validator("pattern")
    @classmethod
    def _be_a_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            compiled(pattern)
        return pattern


class Parameters(FrozenModel):
    """The arguments of a tool: a JSON schema of one flat object."""

    type: Literal["object"] = "object"
    properties: dict[Annotated[str, StringConstraints(pattern=r"^\w{1,64}$")], Property] = Field(max_length=10)
    required: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_required(self) -> Self:
        if not set(self.required) <= set(self.properties):
            raise ValueError("required")
        return self


class Tool(FrozenModel):
    """A tool: an HTTP endpoint that takes its arguments as a JSON object by POST and answers with text or JSON.

    A tool that is not `enabled` is stored but not called.

    `answer` is a template for a JSON answer, with fields of the answer and the arguments in braces:
    `Заказ {number}: {status}.`; if empty, each field becomes a line. `headers` None keeps the stored headers, unless
    the address changes.
    """

    name: Annotated[str, StringConstraints(pattern=NAME)]
    title: Short
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
    url: _Url
    parameters: Parameters
    answer: Annotated[str, StringConstraints(max_length=2_000)] = ""
    headers: dict[Header, SecretStr] | None = Field(default=None, max_length=10)
    timeout_seconds: float = Field(default=5, ge=0.1, le=20)
    enabled: bool = True

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr] | None) -> dict[str, SecretStr] | None:
        for name, value in (headers or {}).items():
            if name in _RESERVED or not _SECRET.fullmatch(value.get_secret_value()):
                raise ValueError(name)
        return headers

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return the headers to send, in plain text."""
        return {name: value.get_secret_value() for name, value in (self.headers or {}).items()}


_CACHE: TenantCache[tuple[Tool, ...]] = TenantCache("tools")


def parsed(definition: Mapping[str, object]) -> Tool:
    """Parse a tool definition. Raises `Invalid` with the code `tool_invalid` and the field."""
    return validated(Tool, definition, "tool_invalid")


def all() -> tuple[Tool, ...]:
    """Return the tools of the tenant in context by name, at most seconds behind another process."""

    def load(_cached: tuple[Tool, ...] | None) -> tuple[Tool, ...]:
        rows = select(ToolRow).order_by(ToolRow.name)
        with database.reading() as session:
            return tuple(_accepted(session.scalars(rows)))

    record = registry.current()
    return _CACHE.get(record.key, load, record.settings)


def offered() -> tuple[Tool, ...]:
    """Return the tools that the assistant may call."""
    return tuple(tool for tool in all() if tool.enabled)


def get(name: str) -> Tool:
    """Return a tool of the tenant in context. Raises `NotFound` with the code `tool_unknown`."""
    with database.reading() as session:
        return _tool(session.existing(ToolRow, name))


def put(tool: Tool) -> Tool:
    """Add a tool, or replace the tool with this name. Raises `Invalid` with the code `tools_too_many`."""
    with database.writing() as session:
        session.lock_tenant()
        row = session.find(ToolRow, tool.name)
        if row is None:
            session.check_room(ToolRow, MAX_TOOLS, "tools_too_many")
            row = ToolRow(name=tool.name, definition={}, headers={})
            session.add(row)
        before, headers = _noted(row), row.headers
        if tool.headers is not None:
            row.headers = dict(tool.secrets)
        elif row.definition.get("url", tool.url) != tool.url:
            # Changing the address must not send the secret to a new server.
            row.headers = {}
        row.definition = tool.model_dump(mode="json", exclude={"name", "headers"})
        settings_history.note(session, "tool", "changed" if before else "added", tool.name, before, _noted(row))
        if before and headers != row.headers:
            settings_history.note(session, "tool", "rotated", tool.name)
        stored = _tool(row)
    registry.expire()
    return stored


def remove(name: str) -> None:
    """Remove a tool. Raises `NotFound` with the code `tool_unknown`."""
    with database.writing() as session:
        row = session.existing(ToolRow, name)
        session.delete(row)
        settings_history.note(session, "tool", "removed", name, _noted(row))
    registry.expire()


def set_enabled(name: str, *, enabled: bool) -> Tool:
    """Enable or disable a tool. Raises `NotFound` with the code `tool_unknown`."""
    with database.writing() as session:
        row = session.existing(ToolRow, name, lock=True)
        before = _noted(row)
        row.definition = {**row.definition, "enabled": enabled}
        settings_history.note(session, "tool", "changed", name, {"enabled": True, **before}, _noted(row))
        stored = _tool(row)
    registry.expire()
    return stored


def _noted(row: ToolRow) -> dict[str, object]:
    """Return the values for the change history: headers by their names only."""
    return {**row.definition, "headers": sorted(row.headers)} if row.definition else {}


def _accepted(rows: Iterable[ToolRow]) -> Iterator[Tool]:
    for row in rows:
        try:
            yield _tool(row)
        except ValidationError:
            # Stored when other patterns were accepted. The tenant's other tools go on working.
            log.warning("tool %s of %r is not offered: its definition is no longer accepted", row.name, row.tenant_id)


def _tool(row: ToolRow) -> Tool:
    return Tool.model_validate({"name": row.name, **row.definition, "headers": row.headers})
