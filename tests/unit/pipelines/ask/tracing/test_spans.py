"""The spans of turns that really went through the pipeline, and of calls of models."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from uuid import uuid4

import pytest

from components.models.calls import Call
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.engine import AskEngine
from pipelines.ask.steps import Steps
from pipelines.ask.tracing.export import Span
from pipelines.ask.tracing.spans import resource, spans
from pipelines.ask.tracing.trace import Trace
from pipelines.ask.usecase import Ask, begin
from tenants.accounts import policy
from tenants.core.context import Tenant
from tenants.insight import traces
from tenants.privacy import persons

RETRIED = "Что означает ошибка E20 на машине «Волна Космос»?"
PRIVATE = "Ошибка E20, мой телефон +7 903 123-45-67, почта anna@example.ru"


@pytest.fixture(scope="module")
def ask(shop: Tenant) -> Iterator[Ask]:
    usecase = Ask(AskEngine())
    usecase.engine.warm_up()
    yield usecase
    usecase.engine.close()


@pytest.fixture(scope="module")
def traced(ask: Ask) -> Callable[..., Trace]:
    def trace(question: str, *, content: bool = True, anonymous: bool = False) -> Trace:
        request = AskRequest(question=question, session_id="s-1", quality="thorough", anonymous=anonymous)
        turn, steps = ask.finish(begin(request, str(uuid4()), ()))
        answer = answer_of(turn, trace_id=traces.trace_id(turn.turn_id), steps=steps)
        with policy.overridden(policy.Policy(trace_content=content)):
            return Trace.of(request, steps, answer, asked_at=datetime.now(UTC), pipeline="digest")

    return trace


@pytest.fixture(scope="module")
def retried(traced: Callable[..., Trace]) -> Trace:
    all_spans = traced(RETRIED)
    assert all_spans.answer.verdict.iterations == 2
    return all_spans


def by_name(all_spans: list[Span]) -> dict[str, Span]:
    return {span.name: span for span in all_spans}


def output(span: Span) -> dict[str, object]:
    content_text = json.loads(str(span.attributes["output.value"]))
    assert isinstance(content_text, dict)
    return content_text


def test_a_retried_turn_shows_both_passes_in_order(retried: Trace) -> None:
    all_spans = spans(retried)
    names = [span.name for span in all_spans]
    assert names == ["ask", *(step.label for step in retried.steps.finished)]
    assert {"retrieve", "verify", "retrieve #2", "verify #2"} <= set(names)
    assert all(span.parent == 0 for span in all_spans[1:])
    assert all(one.ended <= two.ended for one, two in pairwise(all_spans[1:]))


def test_each_pass_and_the_outcome_are_events(retried: Trace) -> None:
    first, second, outcome = spans(retried)[0].events
    assert (first.name, second.name, outcome.name) == ("rag_iteration", "rag_iteration", "graph_outcome")
    assert first.attributes
    assert second.attributes
    assert outcome.attributes
    assert (first.attributes["iteration"], second.attributes["iteration"]) == (1, 2)
    assert (first.attributes["route"], second.attributes["route"]) == ("retry", "auto")
    for event in (first, second):
        figures = "graded accepted retriever.found relevance adequacy claims quality took_ms max_iterations"
        assert set(event.attributes or ()) >= set(figures.split())
    assert (outcome.attributes["outcome"], outcome.attributes["iterations"]) == ("partially_answered", 2)


def test_kinds_are_those_of_openinference(retried: Trace) -> None:
    kinds = {name: span.attributes["openinference.span.kind"] for name, span in by_name(spans(retried)).items()}
    assert kinds["ask"] == kinds["answer"] == "CHAIN"
    assert (kinds["guard"], kinds["retrieve #2"], kinds["rank"]) == ("GUARDRAIL", "RETRIEVER", "RERANKER")
    assert {kinds[name] for name in ("grade", "evaluate_retrieval", "verify", "self_evaluate")} == {"EVALUATOR"}


def test_documents_come_with_every_component_of_their_score(retried: Trace) -> None:
    all_spans = by_name(spans(retried))
    outputs = next(step.outputs for step in retried.steps.finished if step.label == "rank #2")
    assert outputs is not None
    attributes = all_spans["rank #2"].attributes
    for place, document in enumerate(outputs["documents"]):
        at = f"reranker.output_documents.{place}.document."
        assert (attributes[f"{at}id"], attributes[f"{at}score"]) == (document.id, document.score)
        assert set(json.loads(str(attributes[f"{at}metadata"]))["scores"]) >= {"search", "relevance", "trust"}
    graded = output(all_spans["grade"])["graded"]
    assert isinstance(graded, list)
    assert {item["verdict"] for item in graded} == {"YES", "NO"}


def test_a_trace_belongs_to_its_tenant_and_session(retried: Trace) -> None:
    content_text = spans(retried)[0].attributes
    assert content_text["session.id"] == "opora:shop:s-1"
    assert content_text["user.id"] == persons.digest("shop", "anna")
    assert json.loads(str(content_text["metadata"]))["tenant"] == "shop"
    assert resource(retried)["openinference.project.name"] == "opora:shop"


def test_an_anonymous_turn_identifies_nobody(traced: Callable[..., Trace]) -> None:
    all_spans = spans(traced("Ошибка E20", anonymous=True))
    assert not {"session.id", "user.id"} & set(all_spans[0].attributes)
    assert "s-1" not in str(all_spans)


def test_enabled_traces_contain_text_without_personal_data(traced: Callable[..., Trace]) -> None:
    content_text = str(spans(traced(PRIVATE)))
    assert "мой телефон [phone], почта [email]" in content_text
    assert "вода не сливается" in content_text
    assert "123-45-67" not in content_text
    assert "anna@example.ru" not in content_text


@pytest.mark.parametrize("question", [PRIVATE, RETRIED, "Отмените мой заказ!", "фыва олдж", "Что такое E401?"])
def test_traces_contain_no_text_unless_enabled(traced: Callable[..., Trace], question: str) -> None:
    content_text = str(spans(traced(question, content=False)))
    assert not any("а" <= letter.lower() <= "я" for letter in content_text)
    assert not any(word in content_text for word in ("example", "E20", "E401"))


def test_a_call_of_a_model_stands_under_its_step(retried: Trace) -> None:
    began = retried.steps.finished[0].started / 1e9
    calls = (
        Call("claims", "ollama", "qwen", "claims.ru@1", "fast", began, 20.0, "ok", 300, 40, 0.002, "verify #2"),
        Call("answer", "ollama", "qwen", "answer.ru@1", "fast", began, 5.0, "timeout"),
    )
    steps = Steps()
    steps.finished, steps.calls = retried.steps.finished, calls
    all_spans = spans(replace(retried, steps=steps))
    good, bad = all_spans[-2:]
    assert (all_spans[good.parent or 0].name, all_spans[bad.parent or 0].name) == ("verify #2", "ask")
    assert good.attributes["openinference.span.kind"] == "LLM"
    assert good.attributes["llm.token_count.total"] == 340
    assert good.attributes["llm.cost.total"] == 0.002
    assert (good.ended - good.started, good.error, bad.error) == (20_000_000, None, "timeout")


@pytest.mark.parametrize(("content", "shown"), [(True, "Вопрос: [phone]"), (False, None)])
def test_a_prompt_is_in_the_trace_if_enabled_without_personal_data(
    retried: Trace, content: bool, shown: str | None
) -> None:
    call = Call("answer", "ollama", "qwen", "answer.ru@1", "fast", 0, 5.0, "ok", request="Вопрос: +7 903 123-45-67")
    steps = Steps()
    steps.calls = (call,)
    (*_, span) = spans(replace(retried, steps=steps, content=content))
    assert span.attributes.get("input.value") == shown


def test_a_turn_that_broke_down_at_once_has_a_trace(retried: Trace) -> None:
    all_spans = spans(replace(retried, steps=Steps()))
    assert [span.name for span in all_spans] == ["ask"]
    assert [event.name for event in all_spans[0].events] == ["graph_outcome"]
