"""The request as it may come, and the answer object: every key on every path."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from pydantic import ValidationError

from components.turn import (
    SHOWN,
    Article,
    Citation,
    Claim,
    Draft,
    Filters,
    Gate,
    Outcome,
    Passage,
    Reply,
    Turn,
    Verdict,
)
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer

PASSAGE = Passage(
    "c1", "errors.md", "Ошибки", "E20", "Код E20: вода не сливается. Проверьте фильтр.", ((0, 28), (29, 46))
)
DRAFT = Draft(
    text="Код E20: вода не сливается. [1]",
    claims=(Claim("Код E20: вода не сливается.", (1,), "supported", "Код E20: вода не сливается."),),
    citations=(Citation(1, PASSAGE, "Код E20: вода не сливается.", (0, 28)),),
    factuality_status="checked",
    quality=91,
)
TURN = Turn(
    turn_id="0f8fad5b-d9cb-469f-a165-70867728950e",
    question="Что значит E20?",
    draft=DRAFT,
    verdict=Verdict(gates=(Gate("relevance", True, 0.93333333, 0.62),)),
    reply=Reply(text=DRAFT.text),
)
KEYS = {
    "": {
        "schema", "turn_id", "trace_id", "session_id", "locale", "outcome", "refusal_reason", "verdict", "answer",
        "citations", "sources", "claims", "scores", "routing", "articles", "suggested_questions", "clarification",
        "handoff", "meta",
    },
    "verdict": {"route", "reasons", "iterations", "max_iterations", "gates"},
    "answer": {"text", "notice", "verified", "missing"},
    "scores": {"quality", "relevance", "factuality", "adequacy", "confidence", "hallucination"},
    "routing": {"intent", "risk", "complexity"},
    "meta": {
        "provider", "model", "quality", "cached", "latency_ms", "latency_ms_by_step", "iterations", "llm_calls",
        "tokens", "cost_usd", "chunks", "beside", "filters", "query", "degraded", "prompt_version",
    },
}  # fmt: skip


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_key_is_there_whatever_the_outcome(outcome: Outcome) -> None:
    answer = json.loads(answer_of(replace(TURN, outcome=outcome)).model_dump_json())
    for part, expected in KEYS.items():
        assert set(answer[part] if part else answer) == expected
    assert answer["schema"] == "turn.v1"
    assert (answer["citations"] != []) == (outcome in SHOWN)
    assert (answer["claims"] != []) == (outcome in SHOWN)
    assert answer["answer"]["verified"] == (outcome in SHOWN)


def test_a_citation_says_where_it_stands() -> None:
    answer = answer_of(replace(TURN, outcome="answered"))
    citation = answer.citations[0]
    assert PASSAGE.text[slice(*citation.span)].strip() == citation.excerpt
    assert citation.cited
    assert answer.sources[0].page_content == PASSAGE.text
    assert answer.meta.chunks.used == 1


def test_an_unsupported_claim_is_never_called_verified() -> None:
    shaky = replace(DRAFT, claims=(*DRAFT.claims, Claim("Ещё.", (1,), "partially_supported")))
    assert not answer_of(replace(TURN, outcome="answered", draft=shaky)).answer.verified


def test_articles_are_read_back_and_no_proof() -> None:
    reply = Reply("Ближе всего эта статья.", articles=(Article(PASSAGE, "Проверьте фильтр.", 0.41236),))
    answer = answer_of(replace(TURN, outcome="low_confidence", reply=reply))
    assert [article.model_dump() for article in answer.articles] == [
        {"doc_id": "errors.md", "title": "Ошибки", "heading": "E20", "url": None, "snippet": "Проверьте фильтр.",
         "score": 0.4124, "text": PASSAGE.text, "sections": ()}
    ]  # fmt: skip
    assert (answer.citations, answer.sources, answer.claims) == ((), (), ())
    assert TurnAnswer.model_validate_json(answer.model_dump_json()) == answer


def test_an_answer_recorded_before_there_were_articles_has_none() -> None:
    recorded = answer_of(replace(TURN, outcome="answered")).model_dump(mode="json")
    del recorded["articles"]
    assert TurnAnswer.model_validate(recorded).articles == ()


def test_a_bare_project_key_is_wrapped() -> None:
    request = AskRequest.model_validate({"question": "q", "filters": {"project_key": "shop"}})
    assert request.filters is not None
    assert request.filters.to_turn() == Filters(project_keys=("shop",))


@pytest.mark.parametrize(
    "filters",
    [
        {"colour": ["red"]},
        {"tenant": "other"},
        {"project_key": "a", "project_keys": ["b"]},
        {"project_key": ["a"]},
        {"project_key": None},
        {"tags": "a"},
        {"tags": [""]},
        {"tags": [1]},
        {"tags": ["a"] * 101},
        {"date_from": "yesterday"},
        {"date_from": "2026-13-01"},
        {"date_to": 20260101},
        [],
        "tags",
    ],
)
def test_filters_that_are_refused(filters: object) -> None:
    with pytest.raises(ValidationError):
        AskRequest.model_validate({"question": "q", "filters": filters})


@pytest.mark.parametrize(
    "fields",
    [
        {"question": ""},
        {"question": " \n\t "},
        {"question": "\x00"},
        {"question": "q" * 2_001},
        {"question": None},
        {"question": ["q"]},
        {"question": "q", "quality": "best"},
        {"question": "q", "locale": "../ru"},
        {"question": "q", "session_id": "a b"},
        {"question": "q", "session_id": ""},
        {"question": "q", "anonymous": "yes"},
        {"question": "q", "tenant_id": "other"},
    ],
)
def test_requests_that_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AskRequest.model_validate(fields)
