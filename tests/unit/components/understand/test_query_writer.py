"""Queries of a model: in its words, but with the question's own codes and numbers."""

import pytest

from components.models.failures import ModelFailed
from components.understand.query_writer import LlmQueryWriter
from tests.models import DOWN, Reply, ScriptedModels

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
