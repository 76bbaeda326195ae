"""Redis, shared by the replicas of an installation: notices, event streams and counters of rate limits.

Nothing is stored in it that must not be lost: all of it is short-lived, or stored in the records as well.
"""

from secrets import token_hex
from threading import Lock

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from settings import Settings
from tenants.storage import database
from tenants.storage.tables import InstallationRow

SECONDS = 0.5
"""Timeout of a connection attempt and of a command."""

_ROW = "redis"
_CLIENTS: dict[str, Redis] = {}
_NAMESPACES: dict[str, str] = {}
_LOCK = Lock()
_NAMING = Lock()


def is_configured(settings: Settings) -> bool:
    """Return whether replicas of this installation can reach each other through Redis."""
    return bool(settings.redis_url.get_secret_value()) and database.is_shared(settings)


def client(settings: Settings) -> Redis:
    """Return the process's client. It is thread-safe and connects when it is used."""
    url = settings.redis_url.get_secret_value()
    with _LOCK:
        if url not in _CLIENTS:
            # One retry replaces a connection of the pool that Redis has closed, for example by restarting.
            _CLIENTS[url] = Redis.from_url(
                url,
                socket_connect_timeout=SECONDS,
                socket_timeout=SECONDS,
                retry=Retry(NoBackoff(), 1),
                decode_responses=True,
            )
        return _CLIENTS[url]


def namespace(settings: Settings) -> str:
    """Return the prefix of the installation's keys and channels. Installations may share a Redis server.

    Raises `TryAgain` if the database does not respond when the process first asks for the prefix.
    """
    with _NAMING:
        known = _NAMESPACES.get(settings.database)
        if known is None:
            with database.writing(settings) as session:
                row = session.locked(InstallationRow, name=_ROW, value=token_hex(8))
                known = _NAMESPACES[settings.database] = f"opora:{row.value}"
        return known


def close_all() -> None:
    """Close all connections. The next call opens new ones."""
    with _LOCK:
        while _CLIENTS:
            _CLIENTS.popitem()[1].close()
        _NAMESPACES.clear()
