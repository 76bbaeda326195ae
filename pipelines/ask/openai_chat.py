"""OpenAI's chat completions over the same use case, so that any client of that protocol can ask.

The text is what a visitor would see: the notice, the answer with its [N], and below it the source of each [N]. Nothing
is sent before it is verified. The whole `turn.v1` object is included under `opora`.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from time import time
from typing import Any, Literal
from uuid import uuid4

from fastapi_openai_compat.chat_completions import ChatCompletion, Choice
from fastapi_openai_compat.chat_completions import Message as Reply
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.turn import SHOWN, Exchange
from pipelines import problems, shutdown
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.events import EventName
from pipelines.ask.runner import Runner
from pipelines.ask.streams import Stream
from tenants.core.errors import Invalid

MODEL = "ask"
_MAX_MESSAGES = 200


class TextPart(BaseModel):
    """A text part of a message. Other types, such as pictures, are not supported."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[TextPart, ...] | None = None

    @property
    def text(self) -> str:
        """Return the text of the message."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(part.text for part in self.content)


class ChatRequest(BaseModel):
    """A request from an OpenAI client. Model parameters such as temperature have no effect.

    `contact` is an extra field, as `extra_body` of OpenAI's library sends it.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    messages: tuple[Message, ...] = Field(min_length=1, max_length=_MAX_MESSAGES)
    stream: bool = False
    contact: str | None = None


async def complete(
    runner: Runner, request: ChatRequest, key: str | None
) -> ChatCompletion | AsyncGenerator[ChatCompletion, None]:
    """Answer the last message of the user; the earlier ones are the conversation.

    :param key: the client's `Idempotency-Key`.
    :returns: the completion, or its chunks when the request asks for a stream.
    :raises OporaError: the caller's mistake, or a reason to try again.
    """
    question, history = parse(request)
    if request.stream:
        return _chunks(await runner.stream(question, key, history))
    turn_id = str(uuid4())
    answer = await runner.answer(question, turn_id, key, history)
    result = answer.model_dump(mode="json")
    return ChatCompletion(
        **_envelope(turn_id),
        object="chat.completion",
        choices=[Choice(index=0, message=Reply(role="assistant", content=readable(answer)), finish_reason="stop")],
        usage=_usage(result),
        opora=result,
    )


def parse(request: ChatRequest) -> tuple[AskRequest, tuple[Exchange, ...]]:
    """Return the question and the conversation before it. Raises `Invalid` when there is no question."""
    texts = [message.text for message in request.messages if message.role == "user" and message.text.strip()]
    if not texts:
        raise Invalid("question_missing")
    try:
        question = AskRequest(question=texts[-1], contact=request.contact)
    except ValidationError as error:
        raise problems.from_validation(error) from None
    return question, tuple(Exchange(earlier, "answered") for earlier in texts[:-1])


def readable(answer: TurnAnswer) -> str:
    """Return the answer as a reader sees it."""
    return "".join(text_of("result", answer.model_dump(mode="json")))


def text_of(name: EventName, data: Mapping[str, object], *, footnotes: bool = True) -> Iterator[str]:
    """Yield the text of an event for a reader, all of it with the result: such clients cannot take text back.

    :param footnotes: list the sources of the marks [N] below the text.
    """
    if name != "result":
        return
    answer = data["answer"]
    if isinstance(answer, Mapping):
        if answer["notice"] and data["outcome"] in SHOWN:
            yield f"{answer['notice']}\n\n"
        yield str(answer["text"])
    if data["outcome"] not in SHOWN:
        yield from _articles(data)
    if footnotes:
        yield from _notes(data)


def _articles(result: Mapping[str, object]) -> Iterator[str]:
    """Articles to read when there is no answer."""
    articles = result["articles"]
    for article in articles if isinstance(articles, list) else ():
        if isinstance(article, Mapping):
            path = " › ".join(str(part) for part in (article["title"], article["heading"]) if part)
            link = f" — {article['url']}" if article["url"] else ""
            snippet = f"\n  {article['snippet']}" if article["snippet"] else ""
            yield f"\n\n- {path}{link}{snippet}"


def _notes(result: Mapping[str, object]) -> Iterator[str]:
    citations = result["citations"]
    cited = [citation for citation in citations if isinstance(citation, Mapping)] if isinstance(citations, list) else []
    lines = [
        f"[{citation['index']}] {citation['title']}{' — ' + str(citation['url']) if citation['url'] else ''}"
        for citation in cited
    ]
    if lines:
        yield "\n\n" + "\n".join(lines)


def _usage(result: Mapping[str, object]) -> dict[str, int]:
    """Return the tokens of all model calls of the turn; 0 when no model was called."""
    meta = result["meta"]
    spent = meta["tokens"] if isinstance(meta, Mapping) else {}
    return {f"{name}_tokens": spent.get(name, 0) for name in ("prompt", "completion", "total")}


async def _chunks(stream: Stream) -> AsyncGenerator[ChatCompletion, None]:
    yield _chunk(stream, Reply(role="assistant", content=""))
    async for event in stream.read():
        if event is None:
            if shutdown.requested():
                return
            # An empty chunk keeps the connection alive: Hayhooks' stream cannot send comments.
            yield _chunk(stream, Reply(role="assistant", content=""))
        elif event.name == "error":
            code = event.data["code"]
            yield ChatCompletion(
                **_envelope(stream.turn_id),
                object="chat.completion.chunk",
                choices=[],
                error={"message": code, "code": code},
            )
            return
        else:
            for text in text_of(event.name, event.data):
                yield _chunk(stream, Reply(role="assistant", content=text))
            if event.name == "result":
                yield _chunk(stream, Reply(role="assistant"), finish="stop", usage=_usage(event.data), opora=event.data)
    yield _DoneMarker(**_envelope(stream.turn_id), object="chat.completion.chunk", choices=[])


class _DoneMarker(ChatCompletion):
    """`[DONE]`, which ends OpenAI's streams and which clients wait for; fastapi-openai-compat 1.4 leaves it out."""

    def model_dump_json(self, **_: Any) -> str:  # noqa: ANN401 - as pydantic has it
        """Return the data of the chunk that Hayhooks sends."""
        return "[DONE]"


def _envelope(turn_id: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{turn_id}", "created": int(time()), "model": MODEL}


def _chunk(stream: Stream, delta: Reply, finish: str | None = None, **more: object) -> ChatCompletion:
    return ChatCompletion(
        **_envelope(stream.turn_id),
        object="chat.completion.chunk",
        choices=[Choice(index=0, delta=delta, finish_reason=finish)],
        **more,
    )
