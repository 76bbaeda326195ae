"""Queries of another pass: of the missing parts, or of a model with the question's own codes and numbers."""

import pytest

from components.faults import collect_degraded
from components.models.failures import ModelFailed
from components.understand.query_writer import LlmQueryWriter
from components.understand.rewrite import QueryRewriter
from tests.models import DOWN, Reply, ScriptedModels
from tests.turns import answer, document

QUESTION = "Как вернуть товар за 14 дней, ошибка E20?"


def form(*queries: str, passage: str = "") -> dict[str, object]:
    return {"queries": queries, "passage": passage}


def write(reply: Reply, *, hyde: bool = False) -> tuple[list[str], ScriptedModels]:
    models = ScriptedModels(rewrite=reply)
    return LlmQueryWriter(models, hyde).write(QUESTION, ["возврат денег"], "ru"), models


def test_the_prompt_lists_missing_topics_and_the_query() -> None:
    result, models = write(form(" возврат \n денег "))
    assert result == ["возврат денег"]
    prompt = models.messages[0][-1].text or ""
    assert all(f"- {one}" in prompt for one in ("возврат денег", QUESTION))


@pytest.mark.parametrize("query", ["ошибка E25", "возврат за 30 дней", ""])
def test_a_query_with_an_invented_code_or_number_is_dropped(query: str) -> None:
    assert write(form(query, "возврат за 14 дней", passage=query), hyde=True)[0] == ["возврат за 14 дней"]


def test_a_hypothetical_passage_is_searched_only_when_configured() -> None:
    reply = form("возврат", passage="Товар можно вернуть.")
    assert write(reply)[0] == ["возврат"]
    assert write(reply, hyde=True)[0] == ["возврат", "Товар можно вернуть."]


def test_an_unavailable_model_is_a_declared_failure() -> None:
    with pytest.raises(ModelFailed):
        write(DOWN)


SEEN = [document("Текст.")]


def test_what_is_missing_is_searched_beside_the_query() -> None:
    outputs = QueryRewriter(max_queries=2).run("возврат", [" цена \n возврата", "срок", "адрес"], 1, SEEN)
    assert outputs == {"query": "возврат", "variants": ["цена возврата", "срок"], "attempt": 2, "seen": SEEN}


def test_the_best_answer_so_far_is_passed_on() -> None:
    best = answer("Да.")
    assert QueryRewriter().run("возврат", ["срок"], 1, SEEN, best=best)["best"] is best
    assert QueryRewriter().run("возврат", [], 1, SEEN, best=best)["best"] is best


def test_nothing_to_search_for_ends_the_loop() -> None:
    outputs = QueryRewriter().run("возврат", ["возврат", " "], 1, SEEN)
    assert outputs["exhausted"].reasons == ("no_new_query",)
    assert "query" not in outputs


def test_the_queries_of_a_model_come_first() -> None:
    models = ScriptedModels(rewrite={"queries": ["оформить возврат"], "passage": ""})
    outputs = QueryRewriter(writer=LlmQueryWriter(models)).run("возврат", ["деньги"], 1, SEEN)
    assert outputs["variants"] == ["оформить возврат", "деньги"]


def test_the_topics_are_searched_if_the_model_fails() -> None:
    with collect_degraded() as noted:
        outputs = QueryRewriter(writer=LlmQueryWriter(ScriptedModels(rewrite=DOWN))).run("возврат", ["деньги"], 1, SEEN)
    assert (outputs["variants"], list(noted)) == (["деньги"], ["rewriter"])
