"""Cross-origin requests: browsers on a tenant's site may use what its widget uses, other origins nothing.

Whether a page may act for a particular site is checked by the gate and by `POST /widget/sessions`; this only lets
browsers ask, and read the answer, where some site is at their origin. Any page may read the answer of
`POST /widget/sessions`, so that the widget can say that its origin is not on the list. No cookie is ever involved.
"""

import logging
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenants.chats import sites
from tenants.core.errors import trail

log = logging.getLogger("opora.gate")

OPEN_TO_SITES = ("/chats", "/feedback")
OPEN_TO_ALL = "/widget/sessions"

_PREFLIGHT: Mapping[str, str] = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept-Language, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}


class SiteCors:
    """Pure ASGI, outside of everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin", "")
        if not origin or not await _is_open(scope["path"], origin):
            await self.app(scope, receive, send)
            return
        shown = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(status_code=204, headers={**_PREFLIGHT, **shown})(scope, receive, send)
            return

        async def send_shown(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(raw=message.setdefault("headers", []))
                answered.update({**shown, "Access-Control-Expose-Headers": "Retry-After, X-Request-Id"})
            await send(message)

        await self.app(scope, receive, send_shown)


async def _is_open(path: str, origin: str) -> bool:
    if path == OPEN_TO_ALL:
        return True
    if not path.startswith(OPEN_TO_SITES):
        return False
    try:
        return await sites.is_allowed_anywhere(origin)
    except Exception as error:
        log.error("the sites cannot be read: %s", trail(error))
        return False
