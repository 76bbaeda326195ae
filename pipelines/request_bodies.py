"""JSON bodies: limited while they arrive, parsed once, large ones in a thread.

Threat: a small body that is expensive to read. A megabyte of `0,0,0` is half a million values; each needs memory to
parse and an error object to validate. They are therefore counted before they are parsed; strings are skipped.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi.routing import APIRoute, request_response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json
from starlette.datastructures import FormData, Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from pipelines import problems
from pipelines.pools import Pool
from tenants.core.errors import Invalid, Malformed, TooLarge, UnsupportedMedia

PARSED = "opora.body"
"""The key of an ASGI scope under which the endpoint finds what the gate has parsed."""

_FEWEST_VALUES = 2_000
_BYTES_A_VALUE = 100
_SMALL_BYTES = 64_000
"""Limit for parsing on the event loop; handing a small body to a thread takes longer than parsing it."""

_QUERY_BYTES, _QUERY_FIELDS, _COOKIES = 8_000, 100, 300
"""Limits of a query, and of the cookies of a request. Browsers keep fewer cookies of a site: Chrome 180."""

_ESCAPED_NUL = b"\\u0000"
_PARSING = Pool("bodies", 2, turns=1)
"""Threads that parse large bodies, one for a tenant: a parser lets nothing else run in the process meanwhile."""


class JsonBounds:
    """Counts the values of a JSON body chunk by chunk.

    :param limit: the most bytes of the body, from which the most values follow.
    """

    def __init__(self, limit: int) -> None:
        self._most = _FEWEST_VALUES + limit // _BYTES_A_VALUE
        self._values = 0
        self._in_string = False
        self._escaped = False

    def feed(self, chunk: bytes) -> None:
        """Count the next chunk. Raises `TooLarge`: `body_too_complex`."""
        if self._escaped:
            chunk = chunk[1:]
            self._escaped = False
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"")
            self._escaped = chunk.endswith(b"\\")
            chunk = chunk.replace(b'\\"', b"")
        parts = chunk.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string = self._in_string == (len(parts) % 2 == 1)
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self._values > self._most:
            raise TooLarge("body_too_complex", limit=self._most)


def is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower().endswith("json")


def check_media(headers: Headers, wanted: str) -> None:
    """Raise `UnsupportedMedia` for a body of another type, or in another encoding than UTF-8."""
    media, _, parameters = headers.get("content-type", "").lower().partition(";")
    charset = parameters.strip().removeprefix("charset=").strip('"')
    if media.strip() != wanted or charset not in ("", "utf-8", "utf8"):
        raise UnsupportedMedia


def check_unambiguous(headers: Headers) -> None:
    """Raise `Malformed` with the code `headers_ambiguous` if the headers give two body lengths or two tokens.

    Threat: a proxy in front of the service uses the other value, and so sees a different request or caller (RFC 9112,
    6.1).
    """
    two_lengths = "content-length" in headers and "transfer-encoding" in headers
    if two_lengths or len(headers.getlist("authorization")) > 1:
        raise Malformed("headers_ambiguous")


def check_fields(query: bytes, headers: Headers) -> None:
    """Raise `Invalid` for a query or a cookie header of many fields, or for NUL, which fits in no text column.

    Threat: FastAPI parses all fields of both on the event loop, for every endpoint with a parameter: 8 kB took 26 ms.
    """
    cookies = sum(one.count(";") for one in headers.getlist("cookie"))
    fits = len(query) <= _QUERY_BYTES and query.count(b"&") < _QUERY_FIELDS and cookies < _COOKIES
    if not fits or b"%00" in query:
        raise Invalid


def form_without_nul(body: bytes) -> bytes:
    return body.replace(b"%00", b"+").replace(b"\0", b"+")


@asynccontextmanager
async def form_with_file(request: Request, *, fields: int) -> AsyncIterator[FormData]:
    """Read a form of one file and so many fields. Raises `Malformed` for names in a character set that has none."""
    async with AsyncExitStack() as files:
        with Malformed().instead_of(UnicodeError):
            form = await files.enter_async_context(request.form(max_files=1, max_fields=fields))
        yield form


def reuse(route: APIRoute) -> None:
    """Let an endpoint take its body as the gate has parsed it, not parse it a second time on the event loop."""
    handle = route.get_route_handler()

    async def handled(request: Request) -> Response:
        if PARSED in request.scope:
            request._json = request.scope[PARSED]
        return await handle(request)

    route.app = request_response(handled)


async def parsed(model: type[BaseModel], body: bytes) -> tuple[object, bytes]:
    """Return the value of a JSON body that the model accepts, and the body, both with a space for each NUL.

    NUL is legal in JSON but fits in no text column of PostgreSQL.

    :raises CallerError: it is not JSON, or not what the model describes.
    """
    if len(body) > _SMALL_BYTES:
        return await _PARSING.run({}, partial(_parsed, model, body))
    return _parsed(model, body)


def _parsed(model: type[BaseModel], body: bytes) -> tuple[object, bytes]:
    try:
        value = from_json(body)
    except ValueError:
        raise Malformed from None
    if _ESCAPED_NUL in body:
        # Not in the bytes: a regular expression takes two seconds for ten megabytes of them.
        value = _without_nul(value)
        body = to_json(value)
    try:
        model.model_validate(value)
    except ValidationError as error:
        raise problems.from_validation(error) from None
    return value, body


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", " ")
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return value


def replay(body: bytes, receive: Receive, *, more: bool = False) -> Receive:
    """Return what receives a body that was read, then what follows it."""
    replaced = False

    async def replayed() -> Message:
        nonlocal replaced
        if replaced:
            return await receive()
        replaced = True
        return {"type": "http.request", "body": body, "more_body": more}

    return replayed
