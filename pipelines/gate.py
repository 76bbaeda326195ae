"""The gate in front of every route: authentication, permissions, and limits of the body.

Threat: Hayhooks has no authentication and adds its own routes (drawing, status, chat, files, API documents), and an
update may add more. So only listed routes pass, and the tenant is set here, once, from the token. Errors from the
application are replaced here too: Hayhooks puts exception text into its 500s.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from http import HTTPStatus
from time import monotonic, perf_counter

from anyio import BrokenResourceError, ClosedResourceError
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines import desk_gate, problems, request_bodies
from pipelines.connections import GRACE_SECONDS, counted_as
from pipelines.fair_requests import Reads, Turn
from pipelines.in_progress import FREE_BYTES, MOST_HELD_BYTES, MOST_OPEN, InProgress
from pipelines.routes import Route, RouteTable, Shares
from tenants.access import revocations, token_uses, tokens
from tenants.access.quotas import RateLimiter, RefusalLimiter
from tenants.chats import sites
from tenants.chats.visitors import IDENTIFIED, Visitors, check_origin, is_site_token
from tenants.chats.visitors import SCOPE as VISIT
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import (
    Forbidden,
    InternalFault,
    Invalid,
    Malformed,
    NotFound,
    OporaError,
    RateLimited,
    TooLarge,
    TryAgain,
    Unauthenticated,
    UnsupportedMedia,
    trail,
)
from tenants.desk import operator_sessions
from tenants.desk.operator_sessions import SignedIn

log = logging.getLogger("opora.gate")

RECHECK_SECONDS = 4.0
"""Time that a stream may go on after its token or session was revoked, and that a body may take to arrive unchecked."""

HELD_RATE = 3_000
"""Minimum bytes per second, on average, of a body that is held."""

_ANYBODY = Tenant("-", "")
_PROBLEM = problems.MEDIA_TYPE.encode()
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PAGE = b"text/html"
_EVENTS = b"text/event-stream"
_BY_STATUS: Mapping[int, type[OporaError]] = {
    400: Malformed,
    404: NotFound,
    405: NotFound,
    415: UnsupportedMedia,
    422: Invalid,
    503: TryAgain,
}


class Gate:
    """Pure ASGI, so that it adds microseconds and cannot break streams.

    :param routes: everything that may be reached; all else is `not_found`.
    :param verify: turns a raw token into a tenant or raises `Unauthenticated`.
    :param visitors: does the same for tokens of visitors.
    :param tenant_locale: called inside the tenant's context; raises when the tenant is not registered, or suspended.
    :param locale: the locale of unauthenticated callers.
    :param refusals_per_minute: refused bodies of one caller before further ones are not read; 0: unlimited.
    :param reads: turns that other parts of the service take, too.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        routes: Sequence[Route],
        verify: Callable[[str], Tenant],
        visitors: Visitors,
        tenant_locale: Callable[[], Awaitable[str]],
        locale: str,
        page_error: Callable[[OporaError], Response],
        most_open: int = MOST_OPEN,
        most_held: int = MOST_HELD_BYTES,
        limiter: RateLimiter | None = None,
        shares: Shares | None = None,
        refusals_per_minute: int = 0,
        reads: Reads | None = None,
    ) -> None:
        self.app = app
        self.in_progress = InProgress(most_open, most_held)
        self.limiter = limiter
        self.shares = shares or Shares()
        self.refusals = RefusalLimiter(refusals_per_minute)
        self.reads = reads or Reads()
        self.routes = RouteTable(routes)
        self.verify = verify
        self.visitors = visitors
        self.tenant_locale = tenant_locale
        self.locale = locale
        self.page_error = page_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _GatedRequest(self, scope, receive, send).run()
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)


class _GatedRequest:
    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send) -> None:
        self.gate = gate
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = Headers(scope=scope)
        self.request_id = str(scope.get("state", {}).get("request_id", ""))
        self.language = problems.locale_of(self.headers.get("accept-language", ""))
        self.route: Route | None = None
        self.caller = _ANYBODY
        self.status = 0
        self.streaming = False
        self.replacement: OporaError | None = None
        self.opening = ExitStack()
        self.turn: Turn | None = None
        self.signed_in: SignedIn | None = None
        self.checked_at = monotonic()
        self.held = 0
        self.is_paced = False
        self.refused_for: tuple[Tenant, ...] = ()

    async def run(self) -> None:
        started = perf_counter()
        self._set_caller(self.gate.locale)
        code = "-"
        try:
            with self.opening:
                await self._forward()
            if self.replacement is not None:
                raise self.replacement
        except OporaError as error:
            code = error.code
            if isinstance(error, Invalid | Malformed | TooLarge):
                self._count_refusal()
            if self.caller is _ANYBODY and not self.is_paced:
                with suppress(RateLimited):
                    await self.gate.in_progress.pace(self._address())
            await self._refuse(error)
        except ClientDisconnect:
            code = "client_disconnected"
        except Exception as error:
            log.error("request %s: %s", self.request_id, trail(error))
            code = InternalFault.code
            await self._refuse(InternalFault())
        finally:
            if self.held:
                self.gate.in_progress.let_go(self.caller, self.held)
            spent = (perf_counter() - started) * 1_000
            # The path of an unknown route is caller input, so it is not logged.
            shown = f"{self.route.method} {self.route.path}" if self.route else "-"
            log.info(
                "%s %s %d %.1fms tenant=%r %s", self.request_id, shown, self.status, spent, self.caller.tenant_id, code
            )

    async def _forward(self) -> None:
        request_bodies.check_unambiguous(self.headers)
        # A router's pattern ends with `$`, which also matches before a final line feed. No valid path has one.
        path = self.scope["path"]
        self.route = None if _CONTROL.search(path) else self.gate.routes.find(self.scope["method"], path)
        if self.route is None:
            raise NotFound
        request_bodies.check_fields(self.scope.get("query_string", b""), self.headers)
        if self.route.scope is None:
            self.is_paced = True
            if not self.route.probe:
                await self.gate.in_progress.pace(self._address())
            await self._pass_on(self.route)
            return
        if self.route.follows:
            opening, self.receive = await self.gate.in_progress.openings.admit(self._address(), self.receive)
            self.opening.enter_context(opening)
        by_cookie = "authorization" not in self.headers and desk_gate.presented(self.headers) != ""
        if self.route.page or (self.route.desk and by_cookie):
            await self._forward_signed_in(self.route, self.route.scope)
            return
        tenant = self.caller = await self._caller()
        if self.route.scope not in tenant.scopes and not (self.route.visitors and VISIT in tenant.scopes):
            raise Forbidden(scope=self.route.scope)
        with acting_as(tenant), self.gate.in_progress.holding_open(tenant.tenant_id):
            self._set_caller(await self.gate.tenant_locale())
            if tenant.token_id:
                token_uses.note(tenant)
                await revocations.check(tenant)
            if tenant.scopes != {VISIT}:
                await self._pass_on(self.route)
                return
            await self._admit(tenant, self.route)
            with self.gate.in_progress.visiting(tenant):
                await self._pass_on(self.route)

    async def _forward_signed_in(self, route: Route, scope: str) -> None:
        signed_in = self.signed_in = await asyncio.to_thread(
            operator_sessions.verify, desk_gate.presented(self.headers)
        )
        if not desk_gate.may(signed_in.operator, scope):
            raise Forbidden(scope=scope)
        tenant = signed_in.operator.acting()
        with operator_sessions.using(signed_in):
            if tenant is None:
                await self._pass_on(route, signed_in)
                return
            self.caller = tenant
            with acting_as(tenant), self.gate.in_progress.holding_open(tenant.tenant_id):
                self._set_caller(await self.gate.tenant_locale())
                await self._pass_on(route, signed_in)

    async def _admit(self, visitor: Tenant, route: Route) -> None:
        if self.gate.limiter is not None and route.per_minute:
            use, shares = f"{route.method} {route.path}", self.gate.shares
            in_browser = bool(visitor.site)  # a tenant's own server speaks for many from one address
            await self.gate.limiter.admit_each(
                {
                    f"{use} of {visitor.subject}": route.per_minute * shares.visitor,
                    f"{use} from {self._address()}": route.per_minute * shares.address * in_browser,
                    f"{use} at {visitor.site}": route.per_minute * shares.site * in_browser,
                }
            )

    def _address(self) -> str:
        return counted_as(str((self.scope.get("client") or ("",))[0]))

    async def _caller(self) -> Tenant:
        token = tokens.presented(self.headers.get("authorization", ""))
        if not is_site_token(token):
            return self.gate.verify(token)
        visitor = await self.gate.visitors.verify(token)
        signed_in = visitor.subject.startswith(IDENTIFIED)
        visitor = replace(visitor, sender=visitor.key() if signed_in else self._address())
        if origin := self.headers.get("origin", ""):
            check_origin(await sites.load(visitor.site), origin, self.headers.get("host", ""))
        return visitor

    async def _check_again(self) -> None:
        """Raise if the reader of an open stream, or the sender of a slow body, would be refused by now.

        Threat: a leaked token whose stream shows all chats of a tenant after its revocation, or whose request, sent
        byte by byte, is complete only then. A visitor's stream or body may outlast its token, because the widget renews
        that without opening another stream. Pages check the session of their streams.
        """
        is_anybody = self.caller is _ANYBODY and self.signed_in is None
        if self.route is None or is_anybody or monotonic() - self.checked_at < RECHECK_SECONDS:
            return
        self.checked_at = monotonic()
        if self.signed_in is None:
            try:
                if (caller := await self._caller()).token_id:
                    await revocations.check(caller)
            except Unauthenticated as refused:
                if refused.code != "token_expired" or self.caller.scopes != {VISIT}:
                    raise
        elif self.route.method != "GET":
            scope = self.route.scope or ""
            again = await asyncio.to_thread(operator_sessions.verify, desk_gate.presented(self.headers))
            if not desk_gate.may(again.operator, scope):
                raise Forbidden(scope=scope)
        elif not self.route.page and not await asyncio.to_thread(operator_sessions.is_alive, self.signed_in):
            raise Unauthenticated("session_ended")
        if self.caller is not _ANYBODY:
            await self.gate.tenant_locale()

    async def _pass_on(self, route: Route, signed_in: SignedIn | None = None) -> None:
        receive = self.receive
        if self.caller is not _ANYBODY:
            self.gate.reads.note_request(self.caller.tenant_id)
        if route.method != "GET" and (route.page or signed_in is not None):
            desk_gate.check_source(self.headers)
        if route.files and signed_in is not None:
            receive = await self._receive_files(route.limit, signed_in)
        elif route.page and route.method != "GET":
            form = await self._read_form(route.limit)
            if signed_in is not None:
                desk_gate.check_csrf(signed_in, self.headers, form)
            receive = request_bodies.replay(form, self.receive)
        elif signed_in is not None and route.method != "GET":
            desk_gate.check_csrf(signed_in, self.headers)
        if route.body is not None:
            receive = await self._read_json(route.body, route.limit)
        elif route.limit and not route.page:
            receive = self._bounded(route.limit)
        if self.caller is not _ANYBODY and (route.method == "GET" or route.takes_turns):
            self.turn = self.gate.reads.turn_of(
                self.caller.tenant_id,
                is_change=route.method != "GET",
                by_visitor=self.caller.scopes == {VISIT},
                is_large=self.held > 0,
                is_notice=route.notice,
            )
        elif route.scope is None and route.takes_turns:
            # No tenant has a name with NUL.
            self.turn = self.gate.reads.turn_of(f"\0{self._address()}", by_visitor=True)
        fault: Exception | None = None
        with self.gate.in_progress.following(self.caller) if route.follows else nullcontext():
            try:
                self.opening.close()
                if self.turn is not None:
                    await self.turn.begin()
                await self.gate.app(self.scope, receive, self._send_response)
            except ExceptionGroup as group:
                fault = _cause(group)
            finally:
                if self.turn is not None:
                    self.turn.end()
        if fault is not None:
            raise fault

    def _set_caller(self, locale: str) -> None:
        """Answer this caller in `locale`, unless the request asks for another one."""
        address = {name: self.scope[name] for name in ("type", "scheme", "server", "root_path") if name in self.scope}
        address["headers"] = [(name, value) for name, value in self.scope["headers"] if name == b"host"]
        problems.caller.set(problems.Caller(self.language or locale, self.request_id, address))

    async def _read_json(self, model: type[BaseModel], limit: int) -> Receive:
        """Read, parse and validate the whole body. Callers with too many refused bodies have to wait."""
        request_bodies.check_media(self.headers, "application/json")
        of_caller = self.caller if self.caller.subject else replace(self.caller, subject=self._address())
        self.gate.refusals.check(of_caller)
        self.refused_for = (of_caller,)
        body = await self._read_bounded(limit)
        if self.held and self.caller is not _ANYBODY:
            # An admin issues as many subjects as it likes.
            large = Tenant(self.caller.tenant_id, f"large bodies {self.route.scope if self.route else None}")
            self.gate.refusals.check(large)
            self.refused_for = (of_caller, large)
        self.scope[request_bodies.PARSED], body = await request_bodies.parsed(model, body)
        if not self.held:
            # The endpoint refuses what a customer typed, which the server that passes it on cannot know.
            self.refused_for = ()
        return request_bodies.replay(body, self.receive)

    def _count_refusal(self) -> None:
        for caller in self.refused_for:
            self.gate.refusals.count(caller)

    async def _read_form(self, limit: int) -> bytes:
        request_bodies.check_media(self.headers, "application/x-www-form-urlencoded")
        return request_bodies.form_without_nul(await self._read_bounded(limit))

    async def _receive_files(self, limit: int, signed_in: SignedIn) -> Receive:
        """Read a form with files just far enough to verify that a page of this session sent it.

        Threat: a foreign form that fills the memory or the disk before it is refused. A script sends the token in a
        header; a plain form has it in its first field, so that it appears in no URL, history or log.
        """
        kind = self.headers.get("content-type", "")
        if not kind.lower().startswith("multipart/form-data;"):
            raise UnsupportedMedia
        receive = self._bounded(limit)
        if desk_gate.CSRF_HEADER in self.headers:
            desk_gate.check_csrf(signed_in, self.headers)
            return receive
        head, more = bytearray(), True
        while more and len(head) < desk_gate.FIRST_FIELD_BYTES:
            message = await receive()
            head += message.get("body", b"")
            more = message.get("more_body", False)
        desk_gate.check_first_field(signed_in, kind, bytes(head))
        return request_bodies.replay(bytes(head), receive, more=more)

    async def _read_bounded(self, limit: int) -> bytes:
        receive = self._bounded(limit, in_memory=True)
        body = bytearray()
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return bytes(body)

    def _bounded(self, limit: int, *, in_memory: bool = False) -> Receive:
        """Receive the body in chunks; raises when it is too large or too slow, or the client disconnects midway.

        :param in_memory: whether the whole body is kept; otherwise only a visitor's counts as held.
        """
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise TooLarge(limit=limit)
        if "content-encoding" in self.headers:
            # The size of a compressed body is unknown before it is unpacked.
            raise UnsupportedMedia
        received, complete, waited = 0, False, 0.0
        held = in_memory or (limit <= MOST_HELD_BYTES and self.caller.scopes == {VISIT})
        bounds = request_bodies.JsonBounds(limit) if request_bodies.is_json(self.headers) else None

        async def bounded() -> Message:
            nonlocal received, complete, waited
            began = monotonic()
            message = await self.receive()
            waited += monotonic() - began
            if message["type"] == "http.disconnect" and not complete:
                raise ClientDisconnect
            size = len(message.get("body", b""))
            received += size
            complete = not message.get("more_body", False)
            if received > limit:
                raise TooLarge(limit=limit)
            if bounds is not None:
                bounds.feed(message.get("body", b""))
            if size and held and received > FREE_BYTES:
                if waited > GRACE_SECONDS + received / HELD_RATE:
                    raise Malformed("body_too_slow")
                self.gate.in_progress.hold(self.caller, size)
                self.held += size
            if message["type"] == "http.request" and complete:
                await self._check_again()
            return message

        return bounded

    async def _send_response(self, message: Message) -> None:
        """Forward a response, replacing errors that are not our problem objects."""
        if message["type"] == "http.response.start":
            status = message["status"]
            if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                self._count_refusal()
            is_page = self.route is not None and self.route.page
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            if status >= 400 and not kind.startswith(_PAGE if is_page else _PROBLEM):
                self.replacement = _BY_STATUS.get(status, InternalFault)()
            else:
                self.status = status
                self.streaming = kind.startswith(_EVENTS)
                if self.streaming and self.turn is not None and self.caller.scopes != {VISIT}:
                    self.turn.end()
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            if is_page:
                headers.update(desk_gate.HEADERS)
            elif self.route is not None and self.route.scope is not None:
                headers.setdefault("Cache-Control", "no-store")
                headers.setdefault("X-Content-Type-Options", "nosniff")
        elif not message.get("more_body", False):
            self.streaming = False
        elif self.streaming:
            if self.turn is not None:
                self.turn.end()  # a visitor's stream, after its first event: the chat
            if self.route is not None and self.route.method == "GET":  # that of a POST is an answer, which ends soon
                await self._check_again()
        if self.replacement is None:
            await (self.turn.send(self.send, message) if self.turn is not None else self.send(message))

    async def _refuse(self, error: OporaError) -> None:
        if self.streaming:
            # Readers of events reconnect by themselves and resume where they left off.
            await self.send({"type": "http.response.body"})
        if self.status:
            return
        self.status = error.status
        response = self._page_of(error) if self.route is not None and self.route.page else problems.response(error)
        if isinstance(error, TooLarge | Malformed):
            response.headers["Connection"] = "close"
        await response(self.scope, self.receive, self.send)

    def _page_of(self, error: OporaError) -> Response:
        if isinstance(error, Unauthenticated):
            query = bytes(self.scope.get("query_string", b"")).decode("latin-1")
            # What was sent to be stored is not sent again by going there.
            path = self.scope["path"] if self.scope["method"] == "GET" else "/desk"
            response = desk_gate.to_sign_in(path, query if self.scope["method"] == "GET" else "")
            self.status = response.status_code
        else:
            response = self.gate.page_error(error)
        response.headers.update(desk_gate.HEADERS)
        return response


def _cause(group: ExceptionGroup[Exception]) -> Exception:
    """Return the error that ended an event stream, which FastAPI sends from a task group.

    A reader that disconnects during an event breaks that group, too: FastAPI 0.165, discussion 15725.
    """
    _, faults = group.split((BrokenResourceError, ClosedResourceError))
    if faults is None:
        return ClientDisconnect()
    first = faults.exceptions[0]
    return _cause(first) if isinstance(first, ExceptionGroup) else first
