"""Fake chat API: the test decides what the bot says, and when. It has one visitor."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from threading import Condition, Thread

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from tests.browser.turns import Json
from tests.servers import Quiet, http
from ui import pages

SITE = "site-key"
_MOMENT = "2026-11-22T18:00:00Z"
_ALLOW = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "authorization, content-type, accept-language",
}
_FILE: Json = {"file_id": "f1", "name": "чек.pdf", "size": 20_480, "media_type": "application/pdf"}


class FakeService:
    """The service as the widget sees it. Everything public may be called from the test's thread."""

    def __init__(self) -> None:
        self.site: Json = {
            "name": "Магазин «Пристань»",
            "locale": "ru",
            "theme": {},
            "welcome": "Здравствуйте! Спросите о товарах, доставке или ремонте.",
            "suggested": ["Ошибка E20", "Как вернуть товар?", "Сколько стоит доставка?"],
            "consent": None,
            "hours": {"open": True, "text": "Сотрудники отвечают каждый день с 8:00 до 22:00"},
            "limits": {"file_bytes": 1_000_000, "question": 2_000},
        }
        self.tools = False
        self.subject = "v:1"
        self.chat: Json | None = None
        self.messages: list[Json] = []
        self.calls: list[tuple[str, str, Json]] = []
        self.answers: list[Json] = []
        """Scripted answers of the bot, next first; without one it stays silent."""
        self.refusal: tuple[int, str] | None = None
        self.refused_paths: set[str] = set()
        self.retry_after = 2
        """Seconds to wait after a refusal with 429."""
        self.held_paths: set[str] = set()
        """Requests to these paths are answered once they are released."""
        self.most_streams = 0
        self._news = Condition()
        self._streams: set[asyncio.Queue[str | None]] = set()
        self._released = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._server = uvicorn.Server(
            uvicorn.Config(self._app(), port=0, log_config=None, timeout_graceful_shutdown=1, lifespan="off")
        )
        self._thread = Thread(target=self._run, daemon=True)
        self.url = ""

    @contextmanager
    def running(self) -> Iterator["FakeService"]:
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self._server.should_exit = True
            self.cut()
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve())
        self._loop.close()

    # Actions of tests

    def begin(self, **changes: object) -> None:
        """Begin with an existing chat."""
        self.chat = {
            "chat_id": "chat-1",
            "state": "bot",
            "owner": "bot",
            "assignee_name": None,
            "version": 1,
            "last_seq": len(self.messages),
            "ticket_id": None,
            "csat": None,
            "contact_wanted": False,
            "customer_seen": 0,
            "locale": "ru",
            "created_at": _MOMENT,
            "updated_at": _MOMENT,
            **changes,
        }

    def add(self, author: str, text: str = "", *, kind: str = "text", **more: object) -> Json:
        """Store a message and send it to all listeners."""
        message: Json = {
            "message_id": f"m{len(self.messages) + 1}",
            "seq": len(self.messages) + 1,
            "author": author,
            "kind": kind,
            "text": text,
            "name": "",
            "client_id": None,
            "turn_id": "",
            "body": {},
            "created_at": _MOMENT,
            **more,
        }
        self.messages.append(message)
        if self.chat:
            self.chat["last_seq"] = message["seq"]
        self.push("message", message)
        with self._news:
            self._news.notify_all()
        return message

    def say(self, turn: Json) -> Json:
        """Store the bot's answer."""
        answer = turn["answer"]
        assert isinstance(answer, dict)
        return self.add("bot", str(answer["text"]), turn_id=turn["turn_id"], body={"turn": turn})

    def change(self, **changes: object) -> None:
        """Change the state of the chat."""
        assert self.chat is not None
        self.chat = {**self.chat, "version": int(str(self.chat["version"])) + 1, **changes}
        self.push("state", self.chat)

    def push(self, name: str, data: Json) -> None:
        """Send an event to every stream."""
        text = f"event: {name}\ndata: {json.dumps(data)}\n\n"
        self._send(text)

    def cut(self) -> None:
        """End every stream."""
        self._send(None)

    def release(self) -> None:
        """Answer held requests."""
        self._loop.call_soon_threadsafe(self._released.set)

    def _send(self, text: str | None) -> None:
        def enqueue() -> None:
            for queue in self._streams:
                queue.put_nowait(text)

        self._loop.call_soon_threadsafe(enqueue)

    def wait_for(self, author: str) -> None:
        """Wait for a message of this author and for an open stream."""
        with self._news:
            heard = self._news.wait_for(
                lambda: self._streams and any(one["author"] == author for one in self.messages), timeout=20
            )
        assert heard, f"nothing came from {author}"

    def called(self, ending: str) -> list[Json]:
        """Return the bodies of all requests so far to a path with this ending."""
        return [body for _, path, body in self.calls if path.endswith(ending)]

    def wait_for_call(self, ending: str, expected: Callable[[Json], bool] = lambda _: True) -> list[Json]:
        """Wait until a call matches: a request may be pending when the page already looks right."""
        with self._news:
            came = self._news.wait_for(lambda: any(map(expected, self.called(ending))), timeout=20)
        assert came, f"not called as expected: {ending} {self.called(ending)}"
        return self.called(ending)

    # Endpoints for the widget

    def _app(self) -> FastAPI:
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

        async def locale_of_site(_key: str) -> str:
            return str(self.site["locale"])

        app.include_router(pages.router(locale_of_site))
        app.add_api_route("/{path:path}", self._serve, methods=["GET", "POST", "OPTIONS"], response_model=None)
        return app

    async def _serve(self, request: Request) -> Response:
        origin = {"Access-Control-Allow-Origin": request.headers.get("origin", "*"), "Vary": "Origin"}
        origin["Access-Control-Expose-Headers"] = "Retry-After"
        if request.method == "OPTIONS":
            return Response(headers=origin | _ALLOW)
        path = request.url.path
        body: Json = {}
        if request.headers.get("content-type") == "application/json":
            body = await request.json()
        with self._news:
            self.calls.append((request.method, path, body))
            self._news.notify_all()
        if path in self.held_paths:
            await self._released.wait()
        refusal = self.refusal if not self.refused_paths or path in self.refused_paths else None
        if refusal:
            response: Response = JSONResponse({"code": refusal[1], "detail": refusal[1]}, refusal[0])
            if refusal[0] == 429:
                response.headers["Retry-After"] = str(self.retry_after)
        else:
            response = self._respond(request.method, path, body, request)
        response.headers.update(origin)
        return response

    def _respond(self, method: str, path: str, body: Json, request: Request) -> Response:
        if path == "/widget/sessions":
            claims = b64encode(json.dumps({"sub": self.subject}).encode()).decode().rstrip("=")
            session = {"token": f"header.{claims}.signature", "expires_in": 900, "subject": self.subject}
            return JSONResponse({**session, "tools": self.tools, "site": self.site})
        if path == "/chats" and method == "GET":
            return JSONResponse([self.chat] if self.chat else [])
        if path == "/chats":
            self.begin()
            return JSONResponse(self.chat)
        if path.startswith("/chats/branch-1"):
            return self._branch(path)
        rest = path.removeprefix("/chats/chat-1").strip("/")
        after = int(request.query_params.get("after", "0"))
        if rest == "" and self.chat:
            return JSONResponse(self._whole(after))
        if rest == "events":
            return StreamingResponse(self._stream(self._whole(after)), media_type="text/event-stream")
        if rest == "messages":
            return self._receive(body)
        if rest == "transcript":
            return PlainTextResponse("Вы: Ошибка E20\n")
        if rest == "files":
            return JSONResponse(_FILE, 201)
        if rest == "files/f1":
            return PlainTextResponse("%PDF")
        if rest == "person":
            self.add("system", kind="event", body={"event": "queued"})
            self.change(state="queued", owner="nobody", ticket_id="T-1")
            return JSONResponse(self.chat)
        if rest == "branch":
            return JSONResponse({**(self.chat or {}), "chat_id": "branch-1"}, 201)
        if rest == "regenerate":
            self.add("system", kind="event", body={"event": "asked_again", "replaces": self.messages[-1]["message_id"]})
            self._answer()
        return JSONResponse({})

    def _branch(self, path: str) -> Response:
        """Return the chat that continues the first one."""
        event = {"event": "branched_from", "chat_id": "chat-1"}
        line = {**self.messages[0], "seq": 3, "message_id": "b3", "author": "system", "kind": "event", "text": ""}
        thread: Json = {
            "chat": {**(self.chat or {}), "chat_id": "branch-1"},
            "messages": [*self.messages[:2], {**line, "body": event, "client_id": None}],
        }
        if path.endswith("/events"):
            return StreamingResponse(self._stream(thread), media_type="text/event-stream")
        return JSONResponse(thread)

    def _receive(self, body: Json) -> Response:
        known = next((one for one in self.messages if one["client_id"] == body["client_id"]), None)
        kind, more = ("file", {"file": _FILE}) if body.get("file_id") else ("text", {})
        sent = known or self.add("customer", str(body["text"]), kind=kind, client_id=body["client_id"], body=more)
        if known is None:
            self._answer()
        return JSONResponse({"message": sent, "chat": self.chat}, 202)

    def _answer(self) -> None:
        if self.answers and self.chat and self.chat["owner"] == "bot":
            self.say(self.answers.pop(0))

    def _whole(self, after: int) -> Json:
        return {"chat": self.chat, "messages": [one for one in self.messages if int(str(one["seq"])) > after]}

    async def _stream(self, snapshot: Json) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._streams.add(queue)
        with self._news:
            self._news.notify_all()
        self.most_streams = max(self.most_streams, len(self._streams))
        try:
            yield f"event: snapshot\ndata: {json.dumps(snapshot)}\n\n"
            while (text := await queue.get()) is not None:
                yield text
        finally:
            self._streams.discard(queue)


@contextmanager
def shop(html: str, *, policy: str = "", paths: tuple[str, ...] = ()) -> Iterator[str]:
    """Serve a page of another origin; yield its address. All other paths are 404."""

    class Page(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200 if self.path == "/" or self.path in paths else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            if policy:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(body)

    with http(Page) as url:
        yield f"{url}/"
