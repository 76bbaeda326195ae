"""Models, which all tenants share."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from threading import Event, Semaphore

import httpx2
import openai
import pytest
import yaml
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

from components.models import breaker
from components.models.calls import collect_calls
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from settings import ROOT
from tenants.access import spending
from tenants.core.context import Tenant, acting_as, tenant_id

PROFILES = ROOT / "pipelines/ask/profiles"
QUESTION = [ChatMessage.from_user("Wie?" * 100)]


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
            models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0)


@pytest.mark.parametrize(("profile", "limit"), [("openai", "max_completion_tokens"), ("ollama", "num_predict")])
def test_a_reply_of_a_model_has_an_end(profile: str, limit: str) -> None:
    """A request for a complete list is answered by tens of thousands of tokens, and all of them are paid for."""
    models = yaml.safe_load((PROFILES / f"{profile}.yaml").read_text(encoding="utf-8"))["models"]["init_parameters"]
    for name in ("fast", "strong"):
        assert 1_000 < models[name]["init_parameters"]["generation_kwargs"][limit] < 5_000


class Slow:
    """A generator whose replies to `mallory` take too long."""

    model = "m"

    def run(self, messages: list[ChatMessage], **_: object) -> dict[str, list[ChatMessage]]:
        if tenant_id() == "mallory":
            raise TimeoutError
        return {"replies": [ChatMessage.from_assistant("Насос.", meta={"finish_reason": "stop"})]}


def test_long_replies_of_one_tenant_pause_the_model_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three replies that took longer than the timeout left all tenants without the model for 30 s."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    models = ChatModels(Slow())

    def ask(tenant: str) -> str:
        with acting_as(Tenant(tenant, "anna")):
            return models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0)

    for _ in range(models.failures):
        with pytest.raises(ModelFailed, match="timeout"):
            ask("mallory")
    assert ask("acme") == "Насос."
    with pytest.raises(ModelFailed, match="open_circuit"):
        ask("mallory")


class Held:
    """A generator that notes which tenant calls it, and replies when it is let go, without a count of tokens."""

    model = "m"

    def __init__(self, ends_with: str) -> None:
        self.ends_with = ends_with
        self.called: SimpleQueue[str | None] = SimpleQueue()
        self.go = Semaphore(0)

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        self.called.put(tenant_id())
        assert self.go.acquire(timeout=20)
        if streaming_callback is not None:
            for _ in range(10):
                streaming_callback(StreamingChunk("Насос. "))
        return {"replies": [ChatMessage.from_assistant("Насос. " * 10, meta={"finish_reason": self.ends_with})]}


@pytest.mark.parametrize("leaves", [True, False], ids=["left", "cut off"])
def test_a_reply_that_nobody_read_to_its_end_is_paid_for(monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    """The cap of a tenant saw only complete replies: six that were left cost 0.61 USD, and 0 were counted."""
    paid, stop = list[float](), Event()
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    monkeypatch.setattr(spending, "is_spent", lambda: False)
    monkeypatch.setattr(spending, "spend", paid.append)
    generator = Held("length")
    generator.go.release()
    models = ChatModels(generator, prices={"m": [1_000_000.0, 1_000_000.0]})

    def on_text(_: str) -> None:
        if leaves:
            stop.set()

    with collect_calls(stop=stop), pytest.raises(ModelFailed):
        models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0, on_text=on_text)
    tokens_of_chunk = len("Насос. ".encode()) / 4
    assert paid == [100 + tokens_of_chunk * (1 if leaves else 10)]


def test_a_call_that_waits_for_a_seat_is_paid_for_by_nobody_beyond_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 50 questions at once, 32 calls were made, although 4 run at a time and the first ones reached the cap."""
    paid, generator = list[float](), Held("length")
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    monkeypatch.setattr(spending, "is_spent", lambda: bool(paid))
    monkeypatch.setattr(spending, "spend", paid.append)
    models = ChatModels(generator, prices={"m": [1.0, 1.0]}, concurrent=1)

    def ask(_: int) -> str:
        with pytest.raises(ModelFailed) as failed:
            models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0, on_text=lambda _: None)
        return failed.value.outcome

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(ask, number) for number in range(5)]
        assert not wait(asked, timeout=0.3).done
        generator.go.release(5)
        assert sorted(one.result() for one in asked) == ["malformed", *["too_dear"] * 4]
    assert generator.called.qsize() == len(paid) == 1


def test_long_questions_of_a_visitor_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three long questions of one visitor occupied the places of the tenant for 30 s."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    generator = Held("stop")
    models = ChatModels(generator, concurrent=4)

    def ask(visitor: str) -> str:
        with acting_as(Tenant("acme", visitor, site="site_1")):
            return models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0)

    with ThreadPoolExecutor(8) as pool:
        crowd = [pool.submit(ask, "v:1") for _ in range(6)]
        assert not wait(crowd, timeout=0.3).done
        of_crowd = generator.called.qsize()
        pool.submit(ask, "v:2")
        for _ in range(of_crowd + 1):
            generator.called.get(timeout=5)
        generator.go.release(7)
    assert of_crowd == 2


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "new"])
def test_a_neighbour_s_model_call_does_not_wait_for_a_crowd(monkeypatch: pytest.MonkeyPatch, is_known: bool) -> None:
    """Beside 60 questions of another tenant, an answer took 15 to 23 s instead of 4.1 s."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    generator = Held("stop")
    models = ChatModels(generator, concurrent=4)

    def ask(tenant: str) -> str:
        with acting_as(Tenant(tenant, "anna")):
            return models.ask(QUESTION, step="answer", prompt="answer.ru@0", temperature=0)

    if is_known:
        generator.go.release()
        ask("acme")
        assert generator.called.get(timeout=20) == "acme"
    with ThreadPoolExecutor(11) as pool:
        crowd = [pool.submit(ask, "mallory") for _ in range(10)]
        for _ in range(3 if is_known else 4):
            assert generator.called.get(timeout=20) == "mallory"
        assert not wait(crowd, timeout=0.3).done
        neighbour = pool.submit(ask, "acme")
        wait([neighbour], timeout=0.3)  # it is in line
        if not is_known:
            generator.go.release()  # one call of the crowd ends
        next_caller = generator.called.get(timeout=20)
        generator.go.release(11)
    assert next_caller == "acme"
