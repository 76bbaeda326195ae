"""The traces of a tenant, kept by Phoenix: under which names, and how some are erased.

Phoenix keeps them for 90 days (`evaluation/phoenix_server.py`, `compose.yaml`). It is no boundary between tenants:
projects keep order, and whoever may open it sees all of them.
"""

from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

import httpx

from settings import Settings, get_settings
from tenants.errors import TryAgain

_PATIENCE = 10.0
_GONE = 404


def project(tenant_id: str) -> str:
    """The project that a tenant's traces are in."""
    return f"opora:{tenant_id}"


def session(tenant_id: str, session_id: str) -> str:
    """A session's name in Phoenix, where it must be the only one of all projects."""
    return f"{project(tenant_id)}:{session_id}"


def trace_id(turn_id: str) -> str:
    """The trace of a turn, 32 hexadecimal characters: the turn's own id, unless that is no UUID."""
    try:
        return UUID(turn_id).hex
    except ValueError:
        return sha256(turn_id.encode()).hexdigest()[:32]


def erase(turn_ids: Iterable[str], settings: Settings | None = None) -> int:
    """Erase the traces of some turns; says how many there were, none where no Phoenix is set.

    Raises `TryAgain` when Phoenix does not answer.
    """
    settings = settings or get_settings()
    if not settings.phoenix_url:
        return 0
    erased = 0
    try:
        with phoenix(settings) as client:
            for turn_id in turn_ids:
                answer = client.delete(f"/v1/traces/{trace_id(turn_id)}")
                if answer.status_code != _GONE:
                    answer.raise_for_status()
                    erased += 1
    except httpx.HTTPError as error:
        raise TryAgain from error
    return erased


def phoenix(settings: Settings) -> httpx.Client:
    """A client of Phoenix's REST interface."""
    key = settings.phoenix_api_key.get_secret_value()
    return httpx.Client(
        base_url=settings.phoenix_url,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=_PATIENCE,
        trust_env=False,
    )
