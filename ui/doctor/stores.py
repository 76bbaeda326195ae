"""Checks of the stores: the records' database, the index and Redis."""

from collections.abc import Iterator

import httpx

from pipelines.ask.named_models import public_address
from settings import Settings
from tenants.core.errors import CallerError
from tenants.storage import database
from tenants.storage.diagnosis import StoreState, database_state, qdrant_state, redis_state
from tenants.work import locks
from ui.doctor.finding import SECONDS, Finding, of_error, ok, problem, warning

_COMPOSE = "docker compose up --detach {service}"
_DOCKER = "docker run -d -p 127.0.0.1:6333:6333 -v qdrant:/qdrant/storage qdrant/qdrant:v1.19.2"


def check_database(settings: Settings) -> Iterator[Finding]:
    try:
        state = database_state(settings, SECONDS)
    except CallerError as invalid:
        yield of_error("database", invalid)
        return
    yield _postgres(settings, state) if database.is_shared(settings) else _sqlite(settings, state)


def check_index(settings: Settings) -> Iterator[Finding]:
    if not settings.qdrant_url:
        held = locks.index_is_held(settings)
        yield ok("index", "index_in_use" if held else "index_embedded", folder=str(settings.data_dir.resolve()))
        return
    state, url = qdrant_state(settings, SECONDS), public_address(settings.qdrant_url)
    if state.access == "current":
        yield ok("index", "qdrant", url=url, version=state.version)
    elif state.access in ("older", "newer"):
        yield warning("index", f"qdrant_{state.access}", url=url, version=state.version)
    elif state.access == "refused":
        yield problem("index", "qdrant_refused", "export OPORA_QDRANT_API_KEY=…", url=url)
    else:
        is_local = httpx.URL(settings.qdrant_url).host in ("127.0.0.1", "localhost")
        start = _DOCKER if is_local else _COMPOSE.format(service="qdrant")
        yield problem("index", "qdrant_unreachable", start, url=url)


def check_redis(settings: Settings) -> Iterator[Finding]:
    """Check Redis, through which replicas notify each other and count their limits."""
    url = settings.redis_url.get_secret_value()
    if not url:
        if database.is_shared(settings):
            yield warning("redis", "redis_single", "export OPORA_REDIS_URL=redis://127.0.0.1:6379/0")
        else:
            yield ok("redis", "redis_none")
        return
    try:
        state = redis_state(url, SECONDS)
    except ValueError:
        yield problem("redis", "redis_url_invalid", "export OPORA_REDIS_URL=redis://127.0.0.1:6379/0")
        return
    if state.access == "current":
        yield ok("redis", "redis", version=state.version)
    elif state.access == "refused":
        yield problem("redis", "redis_refused", "export OPORA_REDIS_URL=redis://:…@127.0.0.1:6379/0")
    else:
        yield problem("redis", "redis_unreachable", _COMPOSE.format(service="redis"))


def _sqlite(settings: Settings, state: StoreState) -> Finding:
    file = str(database.parsed_url(settings).database)
    if state.access == "current":
        return ok("database", "sqlite", file=file, revision=state.revision)
    if state.access == "absent":
        return ok("database", "sqlite_absent", file=file)
    if state.access == "older":
        # An embedded database is upgraded by the next start.
        return ok("database", "sqlite_older", file=file, revision=state.revision, head=database.HEAD)
    if state.access == "lost":
        return of_error("database", CallerError("database_missing", folder=str(settings.data_dir / "index")))
    if state.access == "newer":
        return of_error("database", CallerError("database_newer", found=state.revision, known=database.HEAD))
    if state.access == "corrupt":
        return of_error("database", CallerError("database_corrupt"), "opora restore …")
    return problem("database", "sqlite_unreadable", file=file)


def _postgres(settings: Settings, state: StoreState) -> Finding:
    url = database.parsed_url(settings)
    place = url.host or url.query.get("host") or "localhost"
    host = f"{place}{f':{url.port}' if url.port else ''}/{url.database}"
    if state.access == "current":
        return ok("database", "postgres", host=host, version=state.version, revision=state.revision)
    if state.access == "absent":
        return ok("database", "postgres_empty", host=host, version=state.version)
    if state.access == "older":
        error = CallerError("database_older", found=state.revision, known=database.HEAD)
        return of_error("database", error, "opora migrate")
    if state.access == "newer":
        return of_error("database", CallerError("database_newer", found=state.revision, known=database.HEAD))
    if state.access == "refused":
        command = "export OPORA_DATABASE_URL=postgresql+psycopg://opora:…@HOST/opora"
        return problem("database", "postgres_refused", command, host=host)
    return problem("database", "postgres_unreachable", _COMPOSE.format(service="postgres"), host=host)
