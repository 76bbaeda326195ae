"""Answers written by a model, over HTTP: streamed as checked, counted, and cancelled without a listener."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.server import Simulator
from pipelines.ask.contract import TurnAnswer
from settings import Settings
from tenants.accounts import policy
from tenants.chats import sites
from tenants.chats.sites import Site
from tenants.core.context import Tenant, acting_as
from tests import desk
from tests.desk import Browser
from tests.service.serving import ARTICLES, in_force
from tests.service.test_streams import ANSWERABLE, stream
from tests.webhooks import wait_until

TOKENS = ("prompt", "completion")


@pytest.fixture(scope="module")
def written(
    anybody: httpx.Client, token: Callable[..., str], ingest: Callable[..., httpx.Response]
) -> Iterator[httpx.Client]:
    """A client of the tenant with answers written by the simulator."""
    assert ingest("written", ARTICLES).status_code == 200
    with httpx.Client(
        base_url=anybody.base_url, timeout=60, headers={"Authorization": f"Bearer {token('written')}"}
    ) as client:
        yield client


@pytest.fixture
def models(simulated_models: tuple[Simulator, str]) -> Simulator:
    simulated_models[0].set_knobs(Knobs())
    return simulated_models[0]


def test_streamed_sentences_are_verified_and_join_to_the_answer(written: httpx.Client, models: Simulator) -> None:
    events = stream(written, ANSWERABLE)
    names = [name for name, _, _ in events]
    assert names.index("sources-early") < names.index("token") < names.index("verdict") < names.index("result")
    nodes = [data["node"] for name, _, data in events[: names.index("token")] if name == "stage"]
    assert {"verify", "self_evaluate"} <= set(nodes), "nothing is told before it is verified"
    answer = TurnAnswer.model_validate(events[-2][2])
    assert answer.outcome == "answered"
    assert "".join(str(data["text"]) for name, _, data in events if name == "token") == answer.answer.text
    assert answer.citations[0].doc_id == "errors.md"
    meta = answer.meta
    assert (meta.provider, meta.model, meta.degraded) == ("ollama", "simulated", ())
    assert meta.llm_calls == len(models.calls)
    assert meta.tokens["completion"] == sum(call.completion_tokens for call in models.calls)
    assert "answer.ru@" in meta.prompt_version


def test_usage_is_what_the_turn_spent(written: httpx.Client, models: Simulator) -> None:
    messages = [{"role": "user", "content": ANSWERABLE}]
    for streamed in (False, True):
        models.set_knobs(Knobs())
        response = written.post("/v1/chat/completions", json={"model": "ask", "messages": messages, "stream": streamed})
        lines = response.text.strip().split("\n\n")
        final = json.loads(lines[-2].removeprefix("data: ")) if streamed else response.json()
        assert not streamed or lines[-1] == "data: [DONE]"
        prompt, completion = (sum(getattr(call, f"{kind}_tokens") for call in models.calls) for kind in TOKENS)
        assert final["usage"] == {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        assert completion > 0


@pytest.mark.usefixtures("models")
def test_a_question_off_topic_is_refused_without_a_model_call(written: httpx.Client, models: Simulator) -> None:
    events = stream(written, "Кто победил на выборах президента?")
    assert [name for name, _, _ in events if name != "stage"] == ["accepted", "result", "done"]
    assert not models.calls


SLOW = Knobs(tokens_per_second=3)


def test_disconnecting_cancels_the_model_call(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(SLOW)
    messages = [{"role": "user", "parts": [{"type": "text", "text": ANSWERABLE}]}]
    with written.stream("POST", "/ask/ui-messages", json={"messages": messages}) as response:
        lines = response.iter_lines()
        assert next(lines)
        wait_until(lambda: any(call.task == "answer" for call in models.calls))
    wait_until(lambda: all(call.outcome != "open" for call in models.calls))
    assert [call.outcome for call in models.calls if call.task == "answer"] == ["left"]


def test_a_reconnecting_client_resumes_its_running_stream(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(SLOW.model_copy(update={"tokens_per_second": 12}))
    seen = ""
    with written.stream("POST", "/ask/stream", json={"question": ANSWERABLE}) as response:
        for line in response.iter_lines():
            if line.startswith("id: "):
                seen = line.removeprefix("id: ")
                break
    wait_until(lambda: any(call.task == "answer" for call in models.calls))
    events = stream(written, ANSWERABLE, **{"Last-Event-ID": seen})
    assert [int(event_id.rpartition(":")[2]) for _, event_id, _ in events] == list(range(2, len(events) + 2))
    assert events[-1][0] == "done"
    assert [call.outcome for call in models.calls if call.task == "answer"] == ["ok"]


def test_without_models_answers_fall_back_to_quotations(written: httpx.Client, models: Simulator) -> None:
    models.set_knobs(Knobs(faults=(Fault(kind="500", times=20),)))
    response = written.post("/ask/run", json={"question": ANSWERABLE})
    answer = TurnAnswer.model_validate_json(response.content)
    assert (response.status_code, answer.outcome) == (200, "answered")
    assert (answer.meta.provider, answer.meta.model) == ("local", "extractive")
    assert "answer" in answer.meta.degraded
    assert json.loads(response.content)["meta"]["tokens"] == {"prompt": 0, "completion": 0, "total": 0}


@pytest.fixture(scope="module")
def site(installation: Settings, written: httpx.Client) -> Site:
    with in_force(installation), acting_as(Tenant("written", "admin")):
        return sites.add("Мастерская", [])


def ask_in_the_widget(anybody: httpx.Client, site: Site, question: str) -> tuple[str, dict[str, Any]]:
    """Ask in a new chat with the requests of the widget. Return the chat's id and the reply."""
    headers = {"Origin": str(anybody.base_url)}
    opened = anybody.post("/widget/sessions", json={"site": site.key}, headers=headers).json()
    assert opened["tools"] is False
    headers["Authorization"] = f"Bearer {opened['token']}"
    chat_id = anybody.post("/chats", json={"locale": "ru"}, headers=headers).json()["chat_id"]
    body = {"text": question, "client_id": uuid4().hex}
    anybody.post(f"/chats/{chat_id}/messages", json=body, headers=headers).raise_for_status()
    replies: list[dict[str, Any]] = []

    def is_answered() -> bool:
        messages = anybody.get(f"/chats/{chat_id}", headers=headers).json()["messages"]
        replies[:] = [one["body"]["turn"] for one in messages if one["author"] == "bot"]
        return bool(replies)

    wait_until(is_answered)
    return chat_id, replies[0]


def test_an_answer_that_cannot_be_checked_reaches_a_person(
    anybody: httpx.Client, models: Simulator, site: Site
) -> None:
    models.set_knobs(Knobs(faults=(Fault(kind="garbage", task="review"),)))
    chat_id, turn = ask_in_the_widget(anybody, site, ANSWERABLE)
    assert (turn["outcome"], turn["refusal_reason"]) == ("human_followup", "budget_exhausted")
    operator = Browser(anybody, desk.secret_of(desk.staff("written", {"Пётр": "operator"})["Пётр"]))
    assert turn["handoff"]["ticket_id"] in operator.get(f"/desk/chat/{chat_id}").text
    assert chat_id in operator.get("/desk").text


DESCALING = {
    "doc_id": "descaling.md",
    "title": "Как убрать накипь в чайнике",
    "text": "Чтобы убрать накипь в чайнике, вскипятите воду с уксусом. Потом дважды промойте чайник чистой водой.",
}
IN_OTHER_WORDS = "Убрать накипь: прокипятить чайник, добавив уксус и соль"


def test_a_rejected_approach_in_other_words_is_left_out(
    written: httpx.Client,
    models: Simulator,
    token: Callable[..., str],
    ingest: Callable[..., httpx.Response],
) -> None:
    ingest("written", [DESCALING]).raise_for_status()
    question = {"question": "Как убрать накипь в чайнике?"}
    assert "уксусом" in written.post("/ask/run", json=question).json()["answer"]["text"]
    editor = {"Authorization": f"Bearer {token('written', 'ingest')}"}
    rejected = {"text": IN_OTHER_WORDS, "reason": "Портит прокладку"}
    created = written.put("/rejected", json=rejected, headers=editor).raise_for_status().json()
    models.set_knobs(Knobs())
    answer = written.post("/ask/run", json=question).json()["answer"]
    assert "proposals" in [call.task for call in models.calls]
    assert "уксусом" not in answer["text"]
    assert "промойте чайник" in answer["text"]
    assert "Портит прокладку" in answer["notice"]
    written.delete(f"/rejected/{created['rejected_id']}", headers=editor).raise_for_status()


DRAIN_FILTERS = {
    "ru": {
        "doc_id": "f31.md",
        "title": "Машина показывает F31",
        "text": "Машина показывает F31, если засорился слив. "
        "Отвинтите сливной фильтр, пока вода под давлением. Перезапустите стирку.",
    },
    "en": {
        "doc_id": "f41.md",
        "title": "The machine shows F41",
        "text": "The machine shows F41 if the drain is blocked. "
        "Twist the drain filter under pressure. Restart the wash.",
    },
}


@pytest.mark.parametrize(
    ("locale", "question", "approach", "left_out"),
    [
        ("ru", "Машина показывает F31", "Откручивать сливной фильтр, пока машина под давлением воды", "Отвинтите"),
        ("en", "The machine shows F41", "Unscrew the drain filter while it is under water pressure", "Twist"),
    ],
)
def test_an_approach_that_only_the_draft_is_close_to_is_left_out(
    written: httpx.Client,
    models: Simulator,
    token: Callable[..., str],
    ingest: Callable[..., httpx.Response],
    locale: str,
    question: str,
    approach: str,
    left_out: str,
) -> None:
    ingest("written", [DRAIN_FILTERS[locale]]).raise_for_status()
    asked = {"question": question, "locale": locale}
    assert left_out in written.post("/ask/run", json=asked).json()["answer"]["text"]
    editor = {"Authorization": f"Bearer {token('written', 'ingest')}"}
    rejected = {"text": approach, "reason": "XYZ-17"}
    created = written.put("/rejected", json=rejected, headers=editor).raise_for_status().json()
    try:
        models.set_knobs(Knobs())
        answer = written.post("/ask/run", json=asked).json()
    finally:
        written.delete(f"/rejected/{created['rejected_id']}", headers=editor).raise_for_status()
    assert answer["answer"]["text"]
    assert left_out not in answer["answer"]["text"]
    assert "XYZ-17" in answer["answer"]["notice"]
    assert answer["meta"]["beside"]["rejected"] == [], "the question is not close to it"
    assert sorted(call.task for call in models.calls) == ["answer", "evaluate", "proposals"]


@pytest.fixture
def sampled(installation: Settings, written: httpx.Client) -> Iterator[None]:
    """The profile of the tenant with another value in one line, until the test ends."""
    profiles = installation.pipelines_dir / "ask" / "profiles"
    source = (profiles / "ollama.yaml").read_text("utf-8")
    assert source.count("samples: 1") == 1
    (profiles / "sampled.yaml").write_text(source.replace("samples: 1", "samples: 3"), "utf-8")
    with in_force(installation), acting_as(Tenant("written", "admin")):
        policy.change(profile="sampled")
    yield
    with in_force(installation), acting_as(Tenant("written", "admin")):
        policy.change(profile="ollama")
    (profiles / "sampled.yaml").unlink()


@pytest.mark.usefixtures("sampled")
def test_one_line_of_yaml_compares_several_drafts(written: httpx.Client, models: Simulator) -> None:
    def agreements() -> list[float]:
        models.set_knobs(Knobs())
        verdict = written.post("/ask/run", json={"question": ANSWERABLE}).json()["verdict"]
        return [gate["score"] for gate in verdict["gates"] if gate["name"] == "agreement"]

    wait_until(lambda: agreements() == [1.0])  # the service sees a changed policy within seconds
    assert len([call for call in models.calls if call.task == "answer"]) == 3


@pytest.mark.usefixtures("models")
def test_the_desk_shows_what_an_answer_cost_and_the_customer_is_spared(anybody: httpx.Client, site: Site) -> None:
    chat_id, turn = ask_in_the_widget(anybody, site, ANSWERABLE)
    meta = turn["meta"]
    operator = Browser(anybody, desk.secret_of(desk.staff("written", {"Олег": "operator"})["Олег"]))
    (answer,) = operator.page(f"/desk/chat/{chat_id}").cssselect(".message.bot .evidence")
    _, tokens, cost = (one.text_content() for one in answer.cssselect("dl.facts dd"))
    assert tokens == f"{meta['tokens']['total']}, вызовов модели: {meta['llm_calls']}"
    assert 0 < float(cost.lstrip("$").replace(",", ".")) == round(meta["cost_usd"], 5)
