"""Models, which all tenants share."""

from collections.abc import Callable, Mapping
from threading import Event

import httpx2
import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

from components.models import breaker
from components.models.calls import collect_calls
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from tenants.access import spending


def replied(reason: str, text: str = "") -> Mapping[str, object]:
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_filter", "message": "filtered"}}),
        (413, {"error": {"message": "too long"}}),
        (200, replied("content_filter", "Код")),
        (200, replied("length", "Код")),
        (200, replied("stop")),
    ],
    ids=["filtered request", "long request", "filtered reply", "long reply", "empty reply"],
)
def test_questions_of_one_tenant_pause_no_model(
    monkeypatch: pytest.MonkeyPatch, status: int, body: Mapping[str, object]
) -> None:
    """Three questions that a content filter refused left all tenants without the model for 30 s."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    generator = OpenAIChatGenerator(api_key=Secret.from_token("k"))
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))
    generator.client = openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0)
    models = ChatModels(generator)
    for _ in range(models.failures + 1):
        with pytest.raises(ModelFailed, match=r"^(?!open_circuit)"):
            models.ask([ChatMessage.from_user("?")], step="answer", prompt="answer.ru@0", temperature=0)


class Unbilled:
    """A generator that streams a reply and reports no tokens."""

    model = "m"

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        assert streaming_callback is not None
        for _ in range(10):
            streaming_callback(StreamingChunk("Насос. "))
        return {"replies": [ChatMessage.from_assistant("Насос. " * 10, meta={"finish_reason": "length"})]}


@pytest.mark.parametrize("leaves", [True, False], ids=["left", "cut off"])
def test_a_reply_that_nobody_read_to_its_end_is_paid_for(monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    """The cap of a tenant saw only complete replies: six that were left cost 0.61 USD, and 0 were counted."""
    paid, stop = list[float](), Event()
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    monkeypatch.setattr(spending, "is_spent", lambda: False)
    monkeypatch.setattr(spending, "spend", paid.append)
    models = ChatModels(Unbilled(), prices={"m": [1_000_000.0, 1_000_000.0]})

    def on_text(_: str) -> None:
        if leaves:
            stop.set()

    question = [ChatMessage.from_user("Wie?" * 100)]
    with collect_calls(stop=stop), pytest.raises(ModelFailed):
        models.ask(question, step="answer", prompt="answer.ru@0", temperature=0, on_text=on_text)
    tokens_of_chunk = len("Насос. ".encode()) / 4
    assert paid == [100 + tokens_of_chunk * (1 if leaves else 10)]
