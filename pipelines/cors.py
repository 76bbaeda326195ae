"""Cross-origin requests: browsers on any page may send what a widget sends, and nothing else.

Whether a page may act for a particular site is checked by the gate and by `POST /widget/sessions`. On a page whose
origin the site does not list, the widget shows the error of that route. No cookie is ever involved, so a page can only
use a token that it has.
"""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OPEN = ("/chats", "/feedback", "/widget/sessions")

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
        if not origin or not scope["path"].startswith(_OPEN):
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
