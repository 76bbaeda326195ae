"""Queries of a retry from a model: in its words, but with the question's own codes and numbers."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from haystack import Pipeline
from haystack.components.generators.chat.mock import MockChatGenerator

from components.language.words import stems
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from components.turn import Draft, Evidence, Turn
from components.understand.query_writer import LlmQueryWriter, NewQueries
from components.understand.rewrite import QueryRewriter
from tenants import lexicon, policy
from tenants.lexicon import Lexicon
from tests.models import DOWN, Reply, ScriptedModels
from tests.turns import query

ASKED = Turn("t", "Как вернуть товар за 14 дней, ошибка E20?", query=query("Как вернуть товар за 14 дней, ошибка E20?"))
RETRIED = replace(
    ASKED, passes=1, evidence=Evidence(missing=("возврат денег",)), best=Draft("", (), (), missing=("товар",))
)


@pytest.fixture(autouse=True)
def known_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    stock: Mapping[str, int] = dict.fromkeys(stems(ASKED.question), 1)
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, stock, {}, 1))
    monkeypatch.setattr(policy, "current", policy.Policy)


def form(*queries: str, passage: str = "") -> dict[str, object]:
    return {"queries": queries, "passage": passage}


def write(reply: Reply, *, hyde: bool = False) -> tuple[NewQueries, ScriptedModels]:
    models = ScriptedModels(rewrite=reply)
    return LlmQueryWriter(models, hyde).write(RETRIED), models


def test_the_prompt_lists_missing_topics_and_earlier_queries() -> None:
    result, models = write(form(" возврат \n денег "))
    assert result == NewQueries(("возврат денег",))
    prompt = models.messages[0][-1].text or ""
    assert all(f"- {one}" in prompt for one in ("возврат денег", "товар", ASKED.question))


@pytest.mark.parametrize("query", ["ошибка E25", "возврат за 30 дней", ""])
def test_a_query_with_an_invented_code_or_number_is_dropped(query: str) -> None:
    result, _ = write(form(query, "возврат за 14 дней", passage=query), hyde=True)
    assert result == NewQueries(("возврат за 14 дней",))


def test_an_overlong_query_is_dropped() -> None:
    assert write(form("слово " * 50, "возврат"))[0].queries == ("возврат",)


def test_a_hypothetical_passage_is_requested_only_when_configured() -> None:
    assert write(form("возврат", passage="Товар можно вернуть."))[0].passage == ""
    assert write(form("возврат", passage="Товар можно вернуть."), hyde=True)[0].passage == "Товар можно вернуть."


def test_an_unavailable_model_is_a_declared_failure() -> None:
    with pytest.raises(ModelFailed):
        write(DOWN)


def searched(reply: Reply, turn: Turn = RETRIED) -> tuple[str, Turn]:
    rewriter = QueryRewriter(writer=LlmQueryWriter(ScriptedModels(rewrite=reply), hyde=True))
    ((socket, after),) = rewriter.run(turn).items()
    return socket, after


def test_a_retry_searches_the_model_queries_before_missing_words() -> None:
    socket, after = searched(form("оформить возврат", passage="Товар можно вернуть."))
    assert socket == "search"
    assert after.query.variants[:2] == ("оформить возврат", "возврат денег")
    assert after.query.variants[-1] == "Товар можно вернуть."
    assert after.query.hyde
    assert (after.query.search, after.passes, after.degraded) == (ASKED.query.search, 2, ())
    assert set(after.query.variants) <= set(after.query.searched_texts)


def test_without_a_model_missing_words_are_searched_and_the_turn_is_degraded() -> None:
    socket, after = searched(DOWN)
    assert (socket, after.query.variants[0], after.degraded) == ("search", "возврат денег", ("rewriter",))
    assert not after.query.hyde


def test_a_query_is_never_searched_twice() -> None:
    tried = replace(RETRIED, query=replace(RETRIED.query, searched_texts=("возврат денег", "возврат", "Товар.")))
    socket, after = searched(form("возврат", passage="Товар."), tried)
    assert (socket, after.verdict.reasons) == ("exhausted", ("no_new_query",))


def test_the_first_pass_asks_no_model() -> None:
    models = ScriptedModels()
    QueryRewriter(writer=LlmQueryWriter(models)).run(Turn("t", "Как вернуть товар?"))
    assert models.asked == []


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("rewrite", QueryRewriter(writer=LlmQueryWriter(ChatModels(MockChatGenerator()), hyde=True)))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components", "haystack"])
    assert again.dumps() == pipeline.dumps()
