"""The simulator as a server: routes, pace, faults, and a log of calls."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import monotonic

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from evaluation.simulator import protocols, schemas, thinking
from evaluation.simulator.failing import faulty_reply, tool_reply
from evaluation.simulator.knobs import DIMENSIONS, Fault, FaultKind, Knobs, Task
from evaluation.simulator.protocols import ChatReply, ChatRequest, OllamaFormat, OpenAIFormat, ReplyFormat, VectorFormat
from evaluation.simulator.reading import Prompt, read
from evaluation.simulator.thinking import embed

VERSION = "0.13.0"
DECLINED = "NO_ANSWER"
_TOKEN = re.compile(r"\s*\S{1,5}")
_HANG_SECONDS = 600.0
_DRIP_SECONDS = 1.0
_OF_PROTOCOL: frozenset[FaultKind] = frozenset({"refused", "hang", "500", "429", "noise"})
_TOO_LONG: frozenset[FaultKind] = frozenset({"truncated", "looping"})
_BACKLOG = 256
_KEEP_ALIVE_SECONDS = 600
_Body = Mapping[str, object]
_Work = Callable[[_Body, Request], Awaitable[Response]]


@dataclass(slots=True)
class Call:
    """A logged call. Times are in seconds of the monotonic clock; 0 if that point was not reached.

    `outcome` is `ok`, a kind of fault, `left` when the client went away, or `open` while it runs.
    """

    task: Task
    model: str
    question: str
    started: float
    first_token: float = 0.0
    ended: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    outcome: str = "open"
    reply: str = field(default="", repr=False)

    def end(self, outcome: str) -> None:
        """Mark the call as ended. The outcome of a planned fault is kept."""
        self.ended = monotonic()
        if self.outcome == "open":
            self.outcome = outcome


@dataclass(slots=True)
class _Load:
    """A model that is in memory from a moment of the monotonic clock on, and how many calls wait for that."""

    ready_at: float
    waiting: int = 0


class Simulator:
    """Answers requests; see `Knobs` for its settings.

    `GET /simulator` returns the knobs and the calls, `POST /simulator` sets all knobs and clears the log of calls.
    """

    def __init__(self, knobs: Knobs | None = None) -> None:
        self.knobs = knobs or Knobs()
        self.calls: list[Call] = []
        self._calls_by_fault: dict[Fault, int] = {}
        self._loads: dict[str, _Load] = {}

    def server(self) -> uvicorn.Server:
        """Return a server, to be run on a socket of `listening`."""
        works: Mapping[str, _Work] = {
            "/api/chat": self._ollama_chat,
            "/v1/chat/completions": self._openai_chat,
            "/api/embed": partial(self._embed, protocols.ollama_vectors),
            "/v1/embeddings": partial(self._embed, protocols.openai_vectors),
            "/tool": self._tool,
            "/simulator": self._set,
        }
        views: Mapping[str, Callable[[], object]] = {
            "/api/tags": self._tags,
            "/v1/models": self._models,
            "/api/version": lambda: {"version": VERSION},
            "/simulator": lambda: {"knobs": self.knobs.model_dump(), "calls": [asdict(call) for call in self.calls]},
        }
        routes = [Route(path, _endpoint(work), methods=["POST"]) for path, work in works.items()]
        routes += [Route(path, _shown(view)) for path, view in views.items()]
        config = uvicorn.Config(
            Starlette(routes=routes),
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=0,
        )
        return uvicorn.Server(config)

    def set_knobs(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.calls = []
        self._calls_by_fault = {}
        self._loads = {}

    async def _ollama_chat(self, body: _Body, request: Request) -> Response:
        chat = protocols.ollama_chat(body)
        return await self._chat(chat, OllamaFormat(chat), f"model '{chat.model}' not found", request)

    async def _openai_chat(self, body: _Body, request: Request) -> Response:
        chat = protocols.openai_chat(body)
        message = f"The model `{chat.model}` does not exist"
        missing = {"message": message, "type": "invalid_request_error", "code": "model_not_found"}
        return await self._chat(chat, OpenAIFormat(chat, usage=protocols.wants_usage(body)), missing, request)

    async def _chat(self, chat: ChatRequest, reply_format: ReplyFormat, missing: object, request: Request) -> Response:
        if chat.model not in self.knobs.models:
            return JSONResponse({"error": missing}, 404)
        prompt = read(chat.messages, chat.schema)
        call = self._record_call(prompt.task, chat.model, prompt.question)
        fault = self._fault(call)
        call.prompt_tokens = _count(prompt.full_text)
        if fault is not None:
            call.outcome = fault.kind
        try:
            if fault is not None and (failure := await _failure(fault, request)) is not None:
                call.end(fault.kind)
                return failure
            loaded_at = await self._loaded(chat.model)
            chat_reply = self._chat_reply(chat, prompt, fault)
            call.reply, call.completion_tokens = chat_reply.text, chat_reply.completion_tokens
            begun = max(call.started, loaded_at)
            pieces = self._pieces(reply_format, chat_reply, fault, call, request, begun)
            if chat.stream:
                return StreamingResponse(pieces, media_type=reply_format.content_type)
            async for _ in pieces:
                continue
            return JSONResponse(reply_format.complete(replace(chat_reply, seconds=call.ended - call.started)))
        except asyncio.CancelledError:
            call.end("left")
            raise

    async def _loaded(self, model: str) -> float:
        """Wait until the model is in memory; return since when it is."""
        load = self._loads.setdefault(model, _Load(monotonic() + self.knobs.loading_ms / 1_000))
        load.waiting += 1
        try:
            await _until(load.ready_at)
        except asyncio.CancelledError:
            if load.waiting == 1:
                self._loads.pop(model, None)
            raise
        finally:
            load.waiting -= 1
        return load.ready_at

    def _chat_reply(self, chat: ChatRequest, prompt: Prompt, fault: Fault | None) -> ChatReply:
        if chat.schema is not None:
            text = json.dumps(schemas.fill(chat.schema, prompt), ensure_ascii=False)
        else:
            text = thinking.answer(prompt) or DECLINED
        if fault is not None:
            text = faulty_reply(fault.kind, text, prompt, chat.schema)
        tokens = _TOKEN.findall(text)
        cut = 0 < chat.longest < len(tokens)
        text_sent = "".join(tokens[: chat.longest]) if cut else text
        reason = "length" if cut or (fault is not None and fault.kind in _TOO_LONG) else "stop"
        return ChatReply(text_sent, _count(prompt.full_text), _count(text_sent), 0.0, reason)

    async def _pieces(
        self,
        reply_format: ReplyFormat,
        chat_reply: ChatReply,
        fault: Fault | None,
        call: Call,
        request: Request,
        begun: float,
    ) -> AsyncIterator[bytes]:
        """Yield a reply token by token, at the pace of the knobs."""
        slow = fault is not None and fault.kind == "slow"
        cut_off = fault is not None and fault.kind == "cut_off"
        tokens = _TOKEN.findall(chat_reply.text) or [chat_reply.text]
        if cut_off:
            tokens = tokens[: max(1, len(tokens) // 2)]
        try:
            for token, at in zip(tokens, self._schedule(len(tokens), slow=slow), strict=False):
                await _until(begun + at)
                call.first_token = call.first_token or monotonic()
                if token:
                    yield reply_format.piece(token)
            if cut_off:
                call.end("cut_off")
                await _reset(request)
                return
            await _until(begun + self.knobs.call_ms / 1_000)
            call.end("ok")
            yield reply_format.last(replace(chat_reply, seconds=call.ended - call.started))
        finally:
            if not call.ended:
                call.end("left")

    def _schedule(self, tokens: int, *, slow: bool) -> Iterator[float]:
        first = self.knobs.first_token_ms / 1_000
        total = self.knobs.call_ms / 1_000
        rate = self.knobs.tokens_per_second
        step = 1.0 / rate if rate else 0.0
        if total:
            step = max(0.0, total - first) / tokens
        if slow:
            step = _DRIP_SECONDS
        return (first + step * place for place in range(tokens))

    async def _embed(self, formatted: VectorFormat, body: _Body, request: Request) -> Response:
        texts = protocols.texts(body.get("input"))
        call = self._record_call("embed", str(body.get("model", "")), texts[0] if texts else "")
        call.prompt_tokens = sum(map(_count, texts))
        fault = self._fault(call)
        if fault is not None:
            call.outcome = fault.kind
            if (failure := await _failure(fault, request)) is not None:
                call.ended = monotonic()
                return failure
        await self._loaded(call.model)
        call.ended = monotonic()
        if fault is not None:
            return _faulty_embeddings(fault, request, len(texts))
        call.outcome = "ok"
        longer = (0.0,) * (self.knobs.dimensions_of(call.model) - DIMENSIONS)
        vectors = [embed(text) + longer for text in texts]
        return JSONResponse(formatted(body, vectors, call.prompt_tokens, call.ended - call.started))

    async def _tool(self, body: _Body, request: Request) -> Response:
        call = self._record_call("tool", "", json.dumps(body, ensure_ascii=False))
        fault = self._fault(call)
        call.end(fault.kind if fault else "ok")
        if fault is not None and fault.kind == "slow":
            return _dripping()
        if fault is not None and (failure := await _failure(fault, request)) is not None:
            return failure
        return Response(tool_reply(fault.kind if fault else None, body), media_type="application/json")

    def _tags(self) -> object:
        details = {"format": "rules", "family": "simulated", "parameter_size": "0", "quantization_level": ""}
        about = {"modified_at": "2026-01-01T00:00:00Z", "size": 0, "digest": "0" * 64, "details": details}
        return {"models": [{"name": name, "model": name, **about} for name in self.knobs.models]}

    def _models(self) -> object:
        about = {"object": "model", "created": 0, "owned_by": "simulator"}
        return {"object": "list", "data": [{"id": name, **about} for name in self.knobs.models]}

    async def _set(self, body: _Body, _: Request) -> Response:
        try:
            self.set_knobs(Knobs.model_validate(body))
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse({"knobs": self.knobs.model_dump()})

    def _record_call(self, task: Task, model: str, question: str) -> Call:
        call = Call(task, model, question, monotonic())
        self.calls.append(call)
        return call

    def _fault(self, call: Call) -> Fault | None:
        due = None
        for fault in self.knobs.faults:
            if fault.task not in (None, call.task) or fault.model not in ("", call.model):
                continue
            count = self._calls_by_fault[fault] = self._calls_by_fault.get(fault, 0) + 1
            if due is None and count > fault.after and (fault.times == 0 or count <= fault.after + fault.times):
                due = fault
        return due


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free port. Clients wait in its queue until a server takes over."""
    return socket.create_server((host, port), backlog=_BACKLOG)


def _shown(view: Callable[[], object]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return JSONResponse(view())

    return endpoint


def _endpoint(work: _Work) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint whose work for a client ends when the client leaves."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
        except (ClientDisconnect, ValueError):
            body = None
        if not isinstance(body, dict):
            return JSONResponse({"error": "the body is no JSON object"}, 400)
        working = asyncio.ensure_future(work(body, request))
        left = asyncio.ensure_future(request.receive())
        await asyncio.wait({working, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait({working})
        return Response()

    return endpoint


async def _failure(fault: Fault, request: Request) -> Response | None:
    """Return a response that fails in the protocol; None if the fault is in the text."""
    kind = fault.kind
    if kind not in _OF_PROTOCOL:
        return None
    if kind == "hang":
        await asyncio.sleep(_HANG_SECONDS)
    if kind == "500":
        return JSONResponse({"error": "model runner has unexpectedly stopped"}, 500)
    if kind == "429":
        return JSONResponse({"error": "too many requests"}, 429, {"Retry-After": "1"})
    if kind == "noise":
        return Response(b"\x16\x03\x01\x02 <html>502 Bad Gateway", media_type="application/json")
    await _reset(request)
    return Response()


def _faulty_embeddings(fault: Fault, request: Request, texts: int) -> Response:
    async def half() -> AsyncIterator[bytes]:
        yield b'{"embeddings": [[0.1, 0.'
        await _reset(request)

    if fault.kind == "slow":
        return _dripping()
    if fault.kind in ("empty", "refusal"):
        return JSONResponse({"embeddings": [], "data": []})
    if fault.kind in ("truncated", "injected", "invented", "doubtful", "looping", "sloppy", "copied"):
        vectors = [[0.0, 1.0]] * texts
        data = [{"index": 0, "embedding": vector} for vector in vectors]
        return JSONResponse({"embeddings": vectors, "data": data})
    if fault.kind == "cut_off":
        return StreamingResponse(half(), media_type="application/json")
    return JSONResponse({"answer": "garbage"})


def _dripping() -> Response:
    """Return a reply that never ends, so that no read timeout fires."""

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(_DRIP_SECONDS)

    return StreamingResponse(drops(), media_type="application/json")


async def _reset(request: Request) -> None:
    """Reset the connection, whatever was sent before."""
    # ASGI has no such message; the receiver is a method of Uvicorn's cycle of request and response.
    request.receive.__self__.transport.abort()  # type: ignore[attr-defined]
    await asyncio.sleep(0)


async def _until(moment: float) -> None:
    seconds = moment - monotonic()
    if seconds > 0:
        await asyncio.sleep(seconds)


def _count(text: str) -> int:
    return len(_TOKEN.findall(text))
