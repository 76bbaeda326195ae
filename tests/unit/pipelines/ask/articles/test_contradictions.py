"""Contradictions that answers met: listed with both passages, settled for good, gone once a text is mended."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from typer.testing import CliRunner, Result

import cli
from components.ingest.document import SourceDocument
from pipelines.ask.articles import contradictions
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import agreements, relations
from tenants.audit import search
from tenants.audit.search import TurnQuery
from tenants.context import SCOPES, Tenant, acting_as
from tenants.errors import NotFound
from tenants.registry import Registry
from tests.unit.pipelines.ask.test_ask_relations import FILLERS, OLD, QUESTION

FAQ = SourceDocument(
    "faq.md", "Частые вопросы", "Посуду можно вернуть в течение 30 дней.", meta={"updated_at": "2026-02-01"}
)


@pytest.fixture
def shelf(installation: Settings) -> Iterator[Ask]:
    """A tenant two of whose documents contradict each other, and that was asked about it twice."""
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna", SCOPES)):
        Ingest().run([OLD, FAQ, *FILLERS])
        ask = Ask()
        for _ in range(2):
            ask.answer(AskRequest(question=QUESTION))
        ask.recorder.collect()
        yield ask
        ask.close()


def beside(ask: Ask) -> int:
    """How many contradictions an answer meets now."""
    return len(ask.turn(AskRequest(question=QUESTION)).evidence.conflicts)


def test_a_pair_is_listed_with_both_passages(shelf: Ask) -> None:
    [pair] = contradictions.met()
    assert (pair.kind, pair.times, pair.question) == ("number", 2, QUESTION)
    assert (pair.trusted.doc_id, pair.other.doc_id) == ("faq.md", "old.md")
    assert "30 дней" in pair.trusted.text
    assert "14 дней" in pair.other.text


def test_the_newer_one_wins(shelf: Ask) -> None:
    [pair] = contradictions.met()
    contradictions.supersede(pair.trusted.doc_id, pair.other.doc_id)
    assert contradictions.met() == ()
    assert relations.current().successors == {"old.md": "faq.md"}


def test_a_pair_that_does_not_contradict_is_not_shown_to_anybody_until_that_is_taken_back(shelf: Ask) -> None:
    [pair] = contradictions.met()
    assert beside(shelf) == 1
    contradictions.agree(pair.other.chunk_id, pair.trusted.chunk_id)
    assert contradictions.met() == ()
    assert beside(shelf) == 0
    [settled] = agreements.all()
    assert settled.decided_by == "anna"
    agreements.remove(pair.trusted.chunk_id, pair.other.chunk_id)
    assert contradictions.met() == (pair,)
    assert beside(shelf) == 1


def test_the_newest_answer_that_met_a_pair_stands_for_it(shelf: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search.find(TurnQuery(), limit=9)
    partial = [replace(one, sequence=one.sequence + 100, turn_id=f"newer-{one.turn_id}") for one in whole]
    by_outcome = {"answered": whole, "partially_answered": partial}
    monkeypatch.setattr(search, "find", lambda query, limit: by_outcome[query.outcome][:limit])
    [pair] = contradictions.met()
    newest = max(partial, key=lambda one: one.sequence)
    assert (pair.times, pair.turn_id) == (4, newest.turn_id)


def test_a_pair_goes_with_the_text_that_made_it(shelf: Ask) -> None:
    Ingest().run([SourceDocument("old.md", "Вернуть посуду", "Посуду можно вернуть в течение 30 дней.")])
    assert contradictions.met() == ()


def test_the_command_line_lists_and_settles_them(shelf: Ask) -> None:
    def opora(*arguments: str) -> Result:
        return CliRunner().invoke(cli.app, [*arguments, "--tenant", "acme"])

    [pair] = json.loads(opora("contradiction", "list", "--json").stdout)
    ids = pair["trusted"]["chunk_id"], pair["other"]["chunk_id"]
    assert {pair["trusted"]["doc_id"], pair["other"]["doc_id"]} == {"faq.md", "old.md"}
    assert ids[0] in opora("contradiction", "list").stdout
    assert opora("agreement", "add", *ids).exit_code == 0
    assert json.loads(opora("contradiction", "list", "--json").stdout) == []
    [agreed] = json.loads(opora("agreement", "list", "--json").stdout)
    assert {agreed["doc_id"], agreed["other_doc_id"]} == {"faq.md", "old.md"}
    assert "faq.md" in opora("agreement", "list").stdout
    assert opora("agreement", "remove", *reversed(ids)).exit_code == 0
    unknown = opora("agreement", "remove", *ids)
    assert (unknown.exit_code, "opora agreement list" in unknown.stderr) == (2, True)


def test_a_passage_that_is_not_there_is_unknown(shelf: Ask) -> None:
    for chunk_id in ("x", "00000000-0000-0000-0000-000000000001"):
        with pytest.raises(NotFound, match="pair_unknown"):
            contradictions.passage(chunk_id)
