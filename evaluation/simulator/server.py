"""The simulator as a server: routes, pace, faults, and a log of calls."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import monotonic
from typing import NoReturn

from pydantic import ValidationError

from evaluation.simulator import protocols, schemas, thinking
from evaluation.simulator.failing import faulty_reply, tool_reply
from evaluation.simulator.knobs import DIMENSIONS, Fault, FaultKind, Knobs, Task
from evaluation.simulator.protocols import ChatReply, ChatRequest, OllamaFormat, OpenAIFormat, ReplyFormat, VectorFormat
from evaluation.simulator.reading import Prompt, read
from evaluation.simulator.thinking import embed
from evaluation.simulator.wire import Reply

VERSION = "0.13.0"
DECLINED = "NO_ANSWER"
_TOKEN = re.compile(r"\s*\S{1,5}")
_HANG_SECONDS = 600.0
_DRIP_SECONDS = 1.0
_OF_PROTOCOL: frozenset[FaultKind] = frozenset({"refused", "hang", "500", "429", "noise"})
_TOO_LONG: frozenset[FaultKind] = frozenset({"truncated", "looping"})
_Body = Mapping[str, object]


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
        self._routes: Mapping[tuple[str, str], Callable[[_Body, Reply], Awaitable[None]]] = {
            ("POST", "/api/chat"): self._ollama_chat,
            ("POST", "/v1/chat/completions"): self._openai_chat,
            ("POST", "/api/embed"): partial(self._embed, protocols.ollama_vectors),
            ("POST", "/v1/embeddings"): partial(self._embed, protocols.openai_vectors),
            ("POST", "/tool"): self._tool,
            ("POST", "/simulator"): self._set,
        }
        self._views: Mapping[str, Callable[[], object]] = {
            "/api/tags": self._tags,
            "/v1/models": self._models,
            "/api/version": lambda: {"version": VERSION},
            "/simulator": lambda: {"knobs": self.knobs.model_dump(), "calls": [asdict(call) for call in self.calls]},
        }

    def set_knobs(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.calls = []
        self._calls_by_fault = {}
        self._loads = {}

    async def handle(self, method: str, path: str, content: bytes, reply: Reply) -> None:
        if method == "GET" and path in self._views:
            await reply.json(self._views[path]())
            return
        route = self._routes.get((method, path))
        if route is None:
            await reply.json({"error": "not found"}, 404)
            return
        try:
            body = json.loads(content or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            await reply.json({"error": "the body is no JSON object"}, 400)
            return
        await route(body, reply)

    async def _ollama_chat(self, body: _Body, reply: Reply) -> None:
        chat = protocols.ollama_chat(body)
        await self._chat(chat, OllamaFormat(chat), f"model '{chat.model}' not found", reply)

    async def _openai_chat(self, body: _Body, reply: Reply) -> None:
        chat = protocols.openai_chat(body)
        message = f"The model `{chat.model}` does not exist"
        missing = {"message": message, "type": "invalid_request_error", "code": "model_not_found"}
        await self._chat(chat, OpenAIFormat(chat, usage=protocols.wants_usage(body)), missing, reply)

    async def _chat(self, chat: ChatRequest, reply_format: ReplyFormat, missing: object, reply: Reply) -> None:
        if chat.model not in self.knobs.models:
            await reply.json({"error": missing}, 404)
            return
        prompt = read(chat.messages, chat.schema)
        call = self._record_call(prompt.task, chat.model, prompt.question)
        fault = self._fault(call)
        call.prompt_tokens = _count(prompt.full_text)
        if fault is not None:
            call.outcome = fault.kind
        try:
            if fault is not None and await self._failed(fault, reply):
                call.end(fault.kind)
                return
            loaded_at = await self._loaded(chat.model)
            chat_reply = self._chat_reply(chat, prompt, fault)
            call.reply, call.completion_tokens = chat_reply.text, chat_reply.completion_tokens
            await self._pronounce(chat, reply_format, chat_reply, fault, call, reply, max(call.started, loaded_at))
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

    async def _pronounce(
        self,
        chat: ChatRequest,
        reply_format: ReplyFormat,
        chat_reply: ChatReply,
        fault: Fault | None,
        call: Call,
        reply: Reply,
        begun: float,
    ) -> None:
        slow = fault is not None and fault.kind == "slow"
        cut_off = fault is not None and fault.kind == "cut_off"
        tokens = _TOKEN.findall(chat_reply.text) or [chat_reply.text]
        if cut_off:
            tokens = tokens[: max(1, len(tokens) // 2)]
        if chat.stream:
            await reply.begin(reply_format.content_type)
        for token, at in zip(tokens, self._schedule(len(tokens), slow=slow), strict=False):
            await _until(begun + at)
            call.first_token = call.first_token or monotonic()
            if chat.stream and token:
                await reply.piece(reply_format.piece(token))
        if cut_off:
            call.end("cut_off")
            await reply.abort()
            return
        await _until(begun + self.knobs.call_ms / 1_000)
        call.end("ok")
        spent = monotonic() - call.started
        ended = replace(chat_reply, seconds=spent)
        if chat.stream:
            await reply.piece(reply_format.last(ended))
            await reply.end()
        else:
            await reply.json(reply_format.complete(ended))

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

    async def _failed(self, fault: Fault, reply: Reply) -> bool:
        """Fail in the protocol; return False if the fault is in the text."""
        kind = fault.kind
        if kind not in _OF_PROTOCOL:
            return False
        if kind == "hang":
            await asyncio.sleep(_HANG_SECONDS)
        if kind == "500":
            await reply.json({"error": "model runner has unexpectedly stopped"}, 500)
        elif kind == "429":
            await reply.json({"error": "too many requests"}, 429, {"Retry-After": "1"})
        elif kind == "noise":
            await reply.content(b"\x16\x03\x01\x02 <html>502 Bad Gateway", "application/json")
        else:
            await reply.abort()
        return True

    async def _embed(self, formatted: VectorFormat, body: _Body, reply: Reply) -> None:
        texts = protocols.texts(body.get("input"))
        call = self._record_call("embed", str(body.get("model", "")), texts[0] if texts else "")
        call.prompt_tokens = sum(map(_count, texts))
        fault = self._fault(call)
        if fault is not None:
            call.outcome = fault.kind
            if await self._failed(fault, reply):
                call.ended = monotonic()
                return
        await self._loaded(call.model)
        await _until(call.started + self.knobs.embed_ms / 1_000)
        call.ended = monotonic()
        if fault is not None:
            if fault.kind == "slow":
                await _drip(reply)
            await _faulty_embeddings(fault, reply, len(texts))
            return
        call.outcome = "ok"
        longer = (0.0,) * (self.knobs.dimensions_of(call.model) - DIMENSIONS)
        vectors = [embed(text) + longer for text in texts]
        await reply.json(formatted(body, vectors, call.prompt_tokens, call.ended - call.started))

    async def _tool(self, body: _Body, reply: Reply) -> None:
        call = self._record_call("tool", "", json.dumps(body, ensure_ascii=False))
        fault = self._fault(call)
        call.end(fault.kind if fault else "ok")
        if fault is not None and fault.kind == "slow":
            await _drip(reply)
        if fault is None or not await self._failed(fault, reply):
            content = tool_reply(fault.kind if fault else None, body)
            await reply.content(content, "application/json")

    def _tags(self) -> object:
        details = {"format": "rules", "family": "simulated", "parameter_size": "0", "quantization_level": ""}
        about = {"modified_at": "2026-01-01T00:00:00Z", "size": 0, "digest": "0" * 64, "details": details}
        return {"models": [{"name": name, "model": name, **about} for name in self.knobs.models]}

    def _models(self) -> object:
        about = {"object": "model", "created": 0, "owned_by": "simulator"}
        return {"object": "list", "data": [{"id": name, **about} for name in self.knobs.models]}

    async def _set(self, body: _Body, reply: Reply) -> None:
        try:
            self.set_knobs(Knobs.model_validate(body))
        except ValidationError as error:
            await reply.json({"error": str(error)}, 422)
            return
        await reply.json({"knobs": self.knobs.model_dump()})

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


async def _faulty_embeddings(fault: Fault, reply: Reply, texts: int) -> None:
    if fault.kind in ("empty", "refusal"):
        await reply.json({"embeddings": [], "data": []})
    elif fault.kind in ("truncated", "injected", "invented", "doubtful", "looping", "sloppy", "copied"):
        vectors = [[0.0, 1.0]] * texts
        await reply.json({"embeddings": vectors, "data": [{"index": 0, "embedding": vector} for vector in vectors]})
    elif fault.kind == "cut_off":
        await reply.begin("application/json")
        await reply.piece(b'{"embeddings": [[0.1, 0.')
        await reply.abort()
    else:
        await reply.json({"answer": "garbage"})


async def _drip(reply: Reply) -> NoReturn:
    """Send a reply that never ends, so that no read timeout fires."""
    await reply.begin("application/json")
    while True:
        await reply.piece(b" ")
        await asyncio.sleep(_DRIP_SECONDS)


async def _until(moment: float) -> None:
    seconds = moment - monotonic()
    if seconds > 0:
        await asyncio.sleep(seconds)


def _count(text: str) -> int:
    return len(_TOKEN.findall(text))
