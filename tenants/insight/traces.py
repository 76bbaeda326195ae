"""Traces of a tenant in Phoenix: their names, and how to find and erase a person's traces.

Phoenix keeps them for 90 days (`evaluation/phoenix_server.py`, `compose.yaml`). It does not isolate tenants: projects
only sort traces, and every user of Phoenix sees all of them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import UUID

import httpx

from settings import Settings, get_settings
from tenants.core import context
from tenants.core.errors import TryAgain

_PATIENCE = 10.0
_PAGE = 1_000
_GONE = 404
_IN_WORK: ContextVar[str] = ContextVar("opora_log_turn", default="")
_Query: TypeAlias = Mapping[str, str | int | list[str]]


def project(tenant_id: str) -> str:
    """Return the project of a tenant's traces."""
    return f"opora:{tenant_id}"


def session(tenant_id: str, session_id: str) -> str:
    """Return a session's name in Phoenix, which must be unique across all projects."""
    return f"{project(tenant_id)}:{session_id}"


def trace_id(turn_id: str) -> str:
    """Return the trace id of a turn, 32 hexadecimal characters: the turn's id, unless that is not a UUID."""
    try:
        return UUID(turn_id).hex
    except ValueError:
        return sha256(turn_id.encode()).hexdigest()[:32]


def begin(turn_id: str) -> None:
    """Note the turn in work: the log names its trace, wherever a line is written."""
    _IN_WORK.set(turn_id)


def current_id() -> str:
    """Return the trace id of the turn in work; empty without one."""
    return trace_id(turn_id) if (turn_id := _IN_WORK.get()) else ""


def of_person(person: str, session_id: str) -> tuple[str, ...]:
    """Return the ids of a person's traces in the tenant in context; empty if no Phoenix is configured.

    :param person: their digest; empty matches everyone in the session, as an empty `session_id` matches all sessions.
    :raises TryAgain: Phoenix does not respond.
    """
    if not get_settings().phoenix_url:
        return ()
    with phoenix() as rest:
        return tuple(_matching(rest, person, session_id))


def erase(person: str, session_id: str) -> int:
    """Erase these traces; return their number.

    :raises TryAgain: Phoenix does not respond. A repeated call erases the rest.
    """
    trace_ids = of_person(person, session_id)
    if trace_ids:
        with phoenix() as rest:
            for trace in trace_ids:
                answer = rest.delete(f"/v1/traces/{trace}")
                if answer.status_code != _GONE:
                    answer.raise_for_status()
    return len(trace_ids)


def erase_all() -> None:
    """Erase the project of the tenant in context with all of its traces.

    :raises TryAgain: Phoenix does not answer.
    """
    if not get_settings().phoenix_url:
        return
    with phoenix() as rest:
        within = _project_id(rest)
        if within is not None:
            rest.delete(f"/v1/projects/{within}").raise_for_status()


@contextmanager
def phoenix() -> Iterator[httpx.Client]:
    """Open a client of Phoenix's REST interface. Raises `TryAgain` if Phoenix fails in the block."""
    with client(get_settings(), _PATIENCE) as opened, TryAgain().instead_of(httpx.HTTPError):
        yield opened


def client(settings: Settings, timeout: float) -> httpx.Client:
    """Create a client of Phoenix's REST interface that waits `timeout` seconds for each part of an answer."""
    key = settings.phoenix_api_key.get_secret_value()
    return httpx.Client(
        base_url=settings.phoenix_url,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=timeout,
        trust_env=False,
    )


def _matching(rest: httpx.Client, person: str, session_id: str) -> Iterator[str]:
    within = _project_id(rest)
    if within is None:
        return
    # Quoted, or Phoenix would take digits for a number. Its project is the tenant's alone, so the bare session will do.
    filters = {"user.id": person, "metadata.session": session_id}
    attributes = [f"{name}:{json.dumps(value)}" for name, value in filters.items() if value]
    about: _Query = {"parent_id": "null", "limit": _PAGE, "attribute": attributes}
    for span in _pages(rest, f"/v1/projects/{within}/spans", about):
        yield str(span["context"]["trace_id"])


def _project_id(rest: httpx.Client) -> str | None:
    """Look up the id of a project, because its name may not fit into a URL."""
    name = project(context.current().tenant_id)
    return next((str(one["id"]) for one in _pages(rest, "/v1/projects", {}) if one["name"] == name), None)


def _pages(rest: httpx.Client, path: str, about: _Query) -> Iterator[Any]:
    """Yield what a list of Phoenix holds, page by page."""
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        answer = rest.get(path, params={**about, **cursor}).raise_for_status().json()
        yield from answer["data"]
        cursor = {"cursor": answer["next_cursor"]} if answer["next_cursor"] is not None else None
