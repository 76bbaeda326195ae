"""Models, which all tenants share."""

from collections.abc import Mapping

import httpx2
import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from components.models import breaker
from components.models.chat import ChatModels
from components.models.failures import ModelFailed


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
