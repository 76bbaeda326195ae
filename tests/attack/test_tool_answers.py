"""Answers of a tool that its tenant made to cost much: nothing else is computed in the process meanwhile."""

import json
import tracemalloc
from time import process_time

import pytest

from components.answer.drafts import with_claims
from components.ingest.fetch import Fetcher, Response
from components.passages import to_passage
from components.retrieve.tools import try_tool
from components.turn import Claim, Draft
from tenants.core.json import Json
from tenants.knowledge.tools import Tool, parsed
from tests.turns import document

MOST_SECONDS, MOST_BYTES = 1.0, 50_000_000


def nested(levels: int) -> Json:
    """Return many values below long names."""
    answer: Json = [1] * 10_000
    for _ in range(levels):
        answer = {"k" * 100: answer}
    return answer


def tool_that_answers(data: bytes, monkeypatch: pytest.MonkeyPatch, template: str = "") -> Tool:
    """Return a tool without parameters, which answers any question with this JSON."""
    response = Response("https://shop.example/", 200, "application/json", data)
    monkeypatch.setattr(Fetcher, "post", lambda *_: response)
    parameters: dict[str, object] = {"type": "object", "properties": {}}
    known = {"name": "orders", "title": "T", "description": "D", "url": response.url}
    return parsed({**known, "parameters": parameters, "answer": template})


@pytest.mark.parametrize(
    ("template", "answer"),
    [("{a}" * 660, {"a": "и\u0306" * 24_000}), ("", nested(400))],
    ids=["a template that repeats a long field", "long names of many fields"],
)
def test_a_tools_answer_takes_no_time_and_no_memory(
    template: str, answer: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.dumps(answer, ensure_ascii=False).encode()
    assert len(data) < 100_000
    tool = tool_that_answers(data, monkeypatch, template)
    tracemalloc.start()
    started_at = process_time()
    tried = try_tool(tool, "Где заказ?")
    spent, (_, peak) = process_time() - started_at, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tried.fault == ""
    assert spent < MOST_SECONDS
    assert peak < MOST_BYTES


def test_a_trial_of_a_tool_that_answers_nested_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_tool(tool_that_answers(b"[" * 90_000, monkeypatch), "Где заказ?").fault == "tool_refused"


def test_a_tools_answer_with_half_a_surrogate_pair_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = try_tool(tool_that_answers(b'{"status": "sent \\ud800"}', monkeypatch), "Где заказ?")
    assert tried.text == "status: sent ?"


def test_a_quoted_text_prints_no_marks_of_other_sources() -> None:
    said, code = "Заказ в пути [1]: его собрали [2] [99].", "`print(orders[0])`"
    passage = to_passage(document(f"{said} {code}", "c0"))
    draft = with_claims(Draft("", (), (), quoted=True), [Claim(said, (1,)), Claim(code, (1,))], {1: passage})
    assert draft.text == "Заказ в пути [ 1 ]: его собрали [ 2 ] [ 99 ]. `print(orders[ 0 ])` [1]"
    assert [citation.excerpt for citation in draft.citations] == [passage.text]
