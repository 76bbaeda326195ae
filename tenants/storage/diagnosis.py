"""State of the database, Redis and Qdrant for `opora doctor`: looked at without creating or changing anything."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from time import time
from typing import Literal, TypeAlias

import httpx
import psycopg
from qdrant_client.common.version_check import is_compatible
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError
from sqlalchemy import func, inspect, select, table

from settings import Settings
from tenants.storage import database

Access: TypeAlias = Literal["absent", "lost", "unreachable", "refused", "corrupt", "older", "newer", "current"]
"""`absent`: to be created by the first start. `lost`: absent, and there is an index. `refused`: the secret is wrong."""

_REVISION = "SELECT version_num FROM alembic_version"


@dataclass(frozen=True, slots=True)
class StoreState:
    """Result of looking at a store.

    :param version: of the server.
    :param revision: of the schema.
    :param ahead_seconds: how far the server's clock is ahead of this machine's; None if unknown.
    """

    access: Access
    version: str = ""
    revision: str = ""
    ahead_seconds: float | None = None


def row_counts() -> dict[str, int]:
    """Count the rows of each table."""
    with database.across_tenants() as session:
        names = inspect(session.connection()).get_table_names()
        return {name: session.scalar(select(func.count()).select_from(table(name))) or 0 for name in names}


def database_state(settings: Settings, seconds: int) -> StoreState:
    """Return the state of the records' database. Raises `CallerError` with the code `database_url_invalid`.

    :param seconds: most seconds to connect, and of each query.
    """
    url = database.parsed_url(settings)
    if url.get_backend_name() == "postgresql":
        return _postgres(settings, seconds)
    return _sqlite(Path(url.database or ""), settings, seconds)


def redis_state(url: str, seconds: int) -> StoreState:
    """Return the state of a Redis server. Raises `ValueError` for an invalid URL."""
    with closing(Redis.from_url(url, socket_connect_timeout=seconds, socket_timeout=seconds)) as client:
        try:
            before = time()
            moment, fraction = client.time()
            version = str(client.info("server").get("redis_version", ""))
        except AuthenticationError:
            return StoreState("refused")
        except RedisError:
            return StoreState("unreachable")
    return StoreState("current", version, ahead_seconds=moment + fraction / 1e6 - before)


def qdrant_state(settings: Settings, seconds: int) -> StoreState:
    """Return the state of the configured server; `older` or `newer` if the client does not fit it.

    :param seconds: most seconds of each of the two requests.
    """
    key = settings.qdrant_api_key.get_secret_value()
    headers = {"api-key": key} if key else {}
    try:
        with httpx.Client(base_url=settings.qdrant_url, headers=headers, timeout=seconds) as http:
            found = str(http.get("/").raise_for_status().json()["version"])
            listed = http.get("/collections")
            if listed.status_code in (401, 403):
                return StoreState("refused", found)
            listed.raise_for_status()
    except httpx.HTTPStatusError as refused:
        return StoreState("refused" if refused.response.status_code in (401, 403) else "unreachable")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return StoreState("unreachable")
    if is_compatible(installed_version("qdrant-client"), found):
        return StoreState("current", found)
    client = tuple(map(int, installed_version("qdrant-client").split(".")[:2]))
    return StoreState("older" if tuple(map(int, found.split(".")[:2])) < client else "newer", found)


def _sqlite(path: Path, settings: Settings, seconds: int) -> StoreState:
    if not path.exists():
        index = settings.data_dir / "index"
        return StoreState("lost" if index.is_dir() and any(index.iterdir()) else "absent")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=seconds)) as connection:
            row = connection.execute(_REVISION).fetchone()
    except sqlite3.DatabaseError as error:
        if "no such table" in str(error):
            return StoreState("absent")
        name = getattr(error, "sqlite_errorname", "")
        return StoreState("corrupt" if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) else "unreachable")
    return _of_revision(row[0] if row else "", sqlite3.sqlite_version)


def _postgres(settings: Settings, seconds: int) -> StoreState:
    bounds = {"database_connect_seconds": seconds, "database_statement_seconds": seconds}
    try:
        with closing(database.own_connection(settings.model_copy(update=bounds))) as connection:
            row = connection.execute("SELECT now(), current_setting('server_version')").fetchone()
            now, version = row if row else (None, "")
            ahead = (now - datetime.now(UTC)).total_seconds() if isinstance(now, datetime) else None
            try:
                found = connection.execute(_REVISION).fetchone()
            except psycopg.errors.UndefinedTable:
                return StoreState("absent", str(version), ahead_seconds=ahead)
    except psycopg.OperationalError as error:
        # The server's message names neither the password nor a row.
        return StoreState("refused" if "authentication" in str(error) else "unreachable")
    except psycopg.Error:
        return StoreState("unreachable")
    return _of_revision(str(found[0]) if found else "", str(version), ahead)


def _of_revision(revision: str, version: str, ahead: float | None = None) -> StoreState:
    access: Access = "current"
    if revision != database.HEAD:
        access = "newer" if revision > database.HEAD else "older"
    return StoreState(access, version, revision, ahead)
