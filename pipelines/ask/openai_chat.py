"""OpenAI's chat completions over the same use case, so that any client of that protocol can ask.

The text is what a visitor would see: the notice, the answer with its [N], and below it the source of each [N]. Nothing
is sent before it is verified. The whole `turn.v1` object is included under `opora`.
"""

from collections.abc import AsyncGenerator
from time import time
from typing import Any, Literal
from uuid import uuid4

from fastapi_openai_compat.chat_completions import ChatCompletion, Choice
from fastapi_openai_compat.chat_completions import Message as Reply
from pydantic import BaseModel, ConfigDict, Field

from components.turn import SHOWN, Exchange
from pipelines import problems, shutdown
from pipelines.ask.contract import QUESTION_LIMIT, ArticlePart, AskRequest, TurnAnswer
from pipelines.ask.runner import Runner
from pipelines.ask.streams import Stream
from tenants.chats.conversation_memory import MAX_TURNS
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
    return ChatCompletion(
        **_envelope(turn_id),
        object="chat.completion",
        choices=[Choice(index=0, message=Reply(role="assistant", content=readable(answer)), finish_reason="stop")],
        usage=_usage(answer),
        opora=answer.model_dump(mode="json"),
    )


def parse(request: ChatRequest) -> tuple[AskRequest, tuple[Exchange, ...]]:
    """Return the question and the conversation before it, as much as is remembered of one: its last turns, cut off.

    :raises Invalid: `question_missing`.
    """
    texts = [message.text for message in request.messages if message.role == "user" and message.text.strip()]
    if not texts:
        raise Invalid("question_missing")
    question = problems.checked(AskRequest, question=texts[-1], contact=request.contact)
    earlier = texts[:-1][-MAX_TURNS:]
    return question, tuple(Exchange(one[:QUESTION_LIMIT], "answered") for one in earlier)


def readable(answer: TurnAnswer, *, footnotes: bool = True) -> str:
    """Return the answer as a reader sees it, all of it at once: such clients cannot take text back.

    :param footnotes: list the sources of the marks [N] below the text.
    """
    shown = answer.outcome in SHOWN
    parts = [answer.answer.notice] if shown and answer.answer.notice else []
    parts.append(answer.answer.text)
    if not shown:
        parts += map(_listed, answer.articles)
    if footnotes and answer.citations:
        parts.append("\n".join(f"[{one.index}] {one.title}{_link(one.url)}" for one in answer.citations))
    return "\n\n".join(parts)


def _listed(article: ArticlePart) -> str:
    path = " › ".join(filter(None, (article.title, article.heading)))
    return f"- {path}{_link(article.url)}" + (f"\n  {article.snippet}" if article.snippet else "")


def _link(url: str | None) -> str:
    return f" — {url}" if url else ""


def _usage(answer: TurnAnswer) -> dict[str, int]:
    return {f"{name}_tokens": answer.meta.tokens.get(name, 0) for name in ("prompt", "completion", "total")}


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
        elif event.name == "result":
            answer = TurnAnswer.model_validate(event.data)
            yield _chunk(stream, Reply(role="assistant", content=readable(answer)))
            yield _chunk(stream, Reply(role="assistant"), finish="stop", usage=_usage(answer), opora=event.data)
    yield _DoneMarker(**_envelope(stream.turn_id), object="chat.completion.chunk", choices=[])


class _DoneMarker(ChatCompletion):
    """`[DONE]`, which ends OpenAI's streams and which clients wait for; fastapi-openai-compat 1.4 leaves it out."""

    def model_dump_json(self, **_: Any) -> str:  # noqa: ANN401 - as pydantic has it
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
