"""HTTP service: mounts Hayhooks and all routes behind the tenant gate. Contains no business logic."""

import asyncio
import gc
import logging
import os
import signal
import sys
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from socket import socket
from types import FrameType
from typing import Protocol, runtime_checkable

# Hayhooks reads a `.env` from any parent folder on import; a stray file must not reconfigure the service.
os.environ["PYTHON_DOTENV_DISABLED"] = "true"

# Must precede Hayhooks, which imports Haystack: turns off telemetry and snapshots.
import components as _components  # noqa: F401

# isort: split
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from hayhooks.server.app import create_app as create_host
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from pipelines import problems, shutdown
from pipelines.ask.articles.usecase import Articles
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.runner import Runner
from pipelines.background import Background
from pipelines.connections import HEAD_BYTES, SeldomFilter, address_of, bounded, raise_file_limit
from pipelines.cors import SiteCors
from pipelines.fair_requests import Reads
from pipelines.gate import Gate
from pipelines.in_progress import MOST_OPEN
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from pipelines.routes import OpenRouter, Route, Shares, opens
from settings import Settings, get_settings
from tenants import index
from tenants.access import installation, quotas
from tenants.access.tokens import TokenVerifier
from tenants.accounts import registry
from tenants.chats import sites
from tenants.chats.visitors import Visitors
from tenants.core import fairness
from tenants.core.errors import Busy, NotFound, TryAgain, trail
from tenants.storage import bus, database
from tenants.work import locks
from ui import pages
from ui.api import api_docs, host, mcp_tool
from ui.api.all import routers as api_routers
from ui.desk import assets as desk_assets
from ui.desk.all import routers as desk_routers
from ui.desk.rendering import Desk
from ui.help import pages as help_pages
from ui.passwords import Passwords
from ui.services import Services

log = logging.getLogger("opora.service")

GRACE_SECONDS = 20
"""Time for running requests to finish after a shutdown signal."""

_NOT_STARTED = 3
KEEP_ALIVE_SECONDS = 75
"""Keep-alive timeout of idle connections. Longer than the timeouts of clients and load balancers, so that they never
send a request into a connection that is being closed.
"""

ACCEPTED_AT_ONCE, _NOT_YET_ACCEPTED = 64, 2_048
"""New connections that are accepted in one turn of the event loop, and how many more the kernel may keep waiting.

Threat: uvloop accepts one in a turn. Behind 2,400 connections made at once, those of others waited for 7 to 20 s.
"""

_BETWEEN_FULL_COLLECTIONS = 100
"""Young collections between full ones; Python's default is 10. A full collection traverses the data of all tenants and
pauses every request for 0.2 s.
"""


@runtime_checkable
class ManagedService(Protocol):
    """Object that holds resources between requests, such as a pipeline wrapper or the nightly check."""

    def warm_up(self) -> None:
        """Acquire the resources."""

    def close(self) -> None:
        """Release the resources."""


@runtime_checkable
class AskEndpoint(Protocol):
    """Wrapper of the ask pipeline, as used by other endpoints."""

    runner: Runner


@runtime_checkable
class RouteProvider(Protocol):
    """Pipeline wrapper that declares its open routes."""

    open_routes: tuple[Route, ...]


def create_app(settings: Settings | None = None, most_open: int = MOST_OPEN) -> FastAPI:
    """Return the service as an ASGI application. Raises if any pipeline fails to load, instead of serving only some."""
    settings = settings or get_settings()
    host.configure(settings)
    app = create_host()
    asking = app.state.pipeline_registry.get("ask")
    if not isinstance(asking, AskEndpoint):
        raise TypeError("the ask pipeline does not answer requests")
    limiter = asking.runner.limiter = quotas.RateLimiter(settings)
    ingest, runner = Ingest(), asking.runner
    library = Library(ingest.rewrite)
    services = Services(
        settings=settings,
        runner=runner,
        limiter=limiter,
        visitors=Visitors(settings),
        conversations=Conversations(runner),
        ingest=ingest,
        library=library,
        articles=Articles(ingest, runner),
        evaluations=Evaluation(runner.ask, runner),
        passwords=Passwords(),
        reads=Reads(),
    )
    desk = Desk(desk_assets.Templates(), settings)
    mcp = host.offer_ask(app)
    app.state.open_routes = _add_routes(app, services, desk)
    _add_gate(app, services, desk, most_open)
    app.add_exception_handler(problems.ProblemException, _problem)
    app.add_exception_handler(RequestValidationError, _problem)
    embedded = [Background(settings, ingest, library, services.evaluations)] if settings.worker == "embedded" else []
    _add_lifespan(app, settings, limiter, mcp, *embedded, services.articles, services.evaluations)
    return app


def _add_routes(app: FastAPI, services: Services, desk: Desk) -> list[Route]:
    """Add all endpoints and return their routes, which are open. The gate rejects requests to any other route."""
    opened = [*host.routes(services.settings)]

    def add(router: OpenRouter) -> None:
        # FastAPI 0.165 matches each included router twice and slowly: half the time of a health check.
        app.router.routes.extend(router.routes)
        opened.extend(router.open)

    for router in (
        *api_routers(services),
        *desk_routers(desk, services),
        pages.router(_locale_of_site),
        help_pages.router(services.limiter, services.runner, services.reads),
        _health(services.settings),
    ):
        add(router)
    if services.settings.api_docs:
        add(api_docs.ApiDocs(app, opened).router())
    opened.extend(_declared_routes(app))
    return opened


def _add_gate(app: FastAPI, services: Services, desk: Desk, most_open: int) -> None:
    # Added last: the gate runs inside CORS (which answers preflights and must add headers to rejections) and request
    # ids, and outside everything that does any work.
    app.user_middleware.append(
        Middleware(
            Gate,
            routes=app.state.open_routes,
            verify=TokenVerifier(services.settings).verify,
            visitors=services.visitors,
            tenant_locale=_tenant_locale,
            locale=services.settings.default_locale,
            page_error=desk.error,
            most_open=most_open,
            limiter=services.limiter,
            shares=_shares(services.settings),
            refusals_per_minute=services.settings.rate_limit_per_minute,
            reads=services.reads,
        )
    )
    # Outermost, because Hayhooks rejects every other origin.
    app.user_middleware.insert(0, Middleware(SiteCors))


def _shares(settings: Settings) -> Shares:
    """Return the limits for visitors; switching off a limit on sessions or messages switches off its kind here too."""
    default = Shares()
    return Shares(
        visitor=default.visitor if settings.chat_messages_per_minute else 0,
        address=default.address if settings.visitor_sessions_per_minute else 0,
        site=default.site if settings.site_sessions_per_minute else 0,
    )


def _declared_routes(app: FastAPI) -> Iterator[Route]:
    """Return the routes declared in the `pipelines/` folders. Our own come first, so these cannot override them."""
    registry = app.state.pipeline_registry
    for name in registry.get_names():
        if isinstance(wrapper := registry.get(name), RouteProvider):
            yield from wrapper.open_routes


async def _tenant_locale() -> str:
    return (await registry.admitted()).locale


async def _locale_of_site(key: str) -> str:
    try:
        return (await sites.load(key)).config.locale
    except NotFound:
        return ""


async def _problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Report an error, or invalid path and query parameters, as a problem object."""
    if isinstance(error, problems.ProblemException):
        return problems.response(error.error)
    if not isinstance(error, RequestValidationError):
        raise error
    # Each location starts with the kind of parameter (`path`, `query`), which callers do not know.
    return problems.response(
        problems.from_complaints([{**complaint, "loc": complaint["loc"][1:]} for complaint in error.errors()])
    )


def serve(settings: Settings | None = None, on_started: Callable[[], None] | None = None) -> None:
    """Run the service in this process until SIGTERM or Ctrl-C, then finish the running requests.

    :param on_started: called once the service accepts requests.
    """
    settings = settings or get_settings()
    os.umask(0o077)  # Keep our files private to the owner, whatever the folder's permissions.
    host.configure_logging(settings)
    # Uvicorn re-raises the signal after shutdown; by then it should mean a clean exit.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    most_connections = raise_file_limit()
    logging.getLogger("uvicorn.error").addFilter(SeldomFilter())
    application = create_app(settings, most_open=min(MOST_OPEN, most_connections or MOST_OPEN))
    server = Server(server_config(application, settings, most_connections))
    server.drain_seconds = settings.drain_seconds
    server.on_started = on_started
    server.run()
    if not server.started:
        sys.exit(_NOT_STARTED)


def server_config(application: ASGIApp, settings: Settings, most_connections: int) -> uvicorn.Config:
    """Return how the service is served."""
    return uvicorn.Config(
        application,
        http=bounded(settings, most_connections),
        h11_max_incomplete_event_size=HEAD_BYTES,
        host=settings.host,
        port=settings.port,
        loop="asyncio",
        backlog=ACCEPTED_AT_ONCE,
        access_log=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        log_config=None,
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class Server(uvicorn.Server):
    """A server that accepts many new connections in one turn of the event loop."""

    drain_seconds = 0.0
    on_started: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, and report that the service accepts requests."""
        await super().startup(sockets)
        for listening in (one for server in self.servers for one in server.sockets):
            with listening.dup() as same:
                same.listen(_NOT_YET_ACCEPTED)
        if self.started and self.on_started is not None:
            self.on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Report "not ready" long enough for load balancers to notice, then stop.

        A second signal, or Ctrl-C, ends at once.
        """
        if sig != signal.SIGTERM or shutdown.announced() or not self.drain_seconds:
            self._end(sig, frame)
            return
        shutdown.announce()
        log.info("leaving in %.0f s", self.drain_seconds)
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(loop.call_later, self.drain_seconds, self._end, sig, frame)

    def _end(self, sig: int, frame: FrameType | None) -> None:
        """End the streams that could outlast the grace period."""
        shutdown.announce()
        shutdown.request()
        super().handle_exit(sig, frame)


_LAST = {"Connection": "close"}
"""Ends a connection after a probe: probes never wait for a turn, so only new connections limit them."""


def _health(settings: Settings) -> OpenRouter:
    endpoints = OpenRouter(None, tags=["health"])

    @endpoints.get("/healthz")
    @opens(probe=True)
    async def healthz() -> Response:
        """Liveness probe: the process answers."""
        return JSONResponse({"status": "ok"}, headers=_LAST)

    @endpoints.get("/readyz")
    @opens(probe=True)
    async def readyz() -> Response:
        """Readiness probe: the pipelines are warm, the records are readable, and this service owns the index."""
        if shutdown.announced():
            raise TryAgain("shutting_down")
        try:
            await to_thread(database.check, settings)
            # After the previous owner of the index has stopped, this service takes over.
            await to_thread(_hold_index, settings)
        except TryAgain:
            raise
        except Exception as error:
            log.error("not ready: %s", trail(error))
            raise TryAgain from None
        # While one tenant's index is being repaired, keep accepting requests of the other tenants.
        damaged = index.damaged()
        return JSONResponse({"status": "ready", **({"damaged_indexes": damaged} if damaged else {})}, headers=_LAST)

    @endpoints.get("/seen")
    async def seen(request: Request) -> Response:
        """Return the address and scheme of this request as the service sees them, to check a reverse proxy."""
        return JSONResponse({"address": address_of(request), "scheme": request.url.scheme})

    return endpoints


def _hold_index(settings: Settings) -> None:
    """Open the embedded index for this service and let CLI commands reach it. Raises `Busy`."""
    locks.hold_index(settings)
    index.share()


def _add_lifespan(
    app: FastAPI, settings: Settings, limiter: quotas.RateLimiter, mcp: mcp_tool.McpEndpoint, *others: ManagedService
) -> None:
    """Warm up before the first request and close after the last one."""
    inner = app.router.lifespan_context
    registry = app.state.pipeline_registry
    wrappers = [registry.get(name) for name in registry.get_names()]
    residents = [*(wrapper for wrapper in wrappers if isinstance(wrapper, ManagedService)), *others]

    @asynccontextmanager
    async def lifespan(started: FastAPI) -> AsyncIterator[None]:
        async with inner(started), mcp.application.router.lifespan_context(mcp.application):
            await to_thread(database.engine, settings)
            await to_thread(installation.check_secrets, settings)
            await to_thread(installation.check_files, settings)
            if database.is_shared(settings) and not bus.is_shared(settings):
                log.warning("OPORA_REDIS_URL is not set: this must be the only replica")
            bus.listen(settings)
            try:
                await to_thread(_hold_index, settings)
                state = "ready on"
            except Busy:
                log.error("another service has the data folder %s", settings.data_dir)
                state = "not ready before the other service stops, listening on"
            for resident in residents:
                await to_thread(resident.warm_up)
            # Warm-up objects are never freed; once frozen, the garbage collector skips them.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*gc.get_threshold()[:2], _BETWEEN_FULL_COLLECTIONS)
            log.info("%s http://%s:%d", state, settings.host, settings.port)
            try:
                with fairness.interruptible():
                    yield
            finally:
                for resident in residents:
                    await to_thread(resident.close)
                await limiter.close()
                await to_thread(bus.close_all)
                await to_thread(locks.close_all)
                await to_thread(index.close_all)
                await to_thread(database.close_all)
                log.info("closed")

    app.router.lifespan_context = lifespan
