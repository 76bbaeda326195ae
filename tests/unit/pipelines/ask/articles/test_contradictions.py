"""Contradictions between documents: found by ingest and at night, listed, settled, gone once a text is mended."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest
from typer.testing import CliRunner, Result

import cli
from components.ingest import comparison
from components.ingest.comparison import compare_some
from components.ingest.document import SourceDocument
from pipelines.ask.articles import contradictions
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from pipelines.ingest.library import Library
from pipelines.ingest.maintenance import NightlyCheck
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import agreements, relations
from tenants.knowledge import contradictions as stored
from tests.installations import installed
from tests.unit.pipelines.ask.test_ask_relations import FILLERS, OLD, QUESTION

ANNA = Tenant("acme", "anna", SCOPES)
FAQ = SourceDocument(
    "faq.md", "Частые вопросы", "Посуду можно вернуть в течение 30 дней.", meta={"updated_at": "2026-02-01"}
)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed installation: a tenant with two contradicting documents."""
    folder = tmp_path_factory.mktemp("stocked")
    with installed(folder):
        Registry().add(ANNA.tenant_id)
        with acting_as(ANNA):
            Ingest().run([OLD, FAQ, *FILLERS])
    return folder


@pytest.fixture
def shelf(stocked: Path, tmp_path: Path) -> Iterator[Ask]:
    """A copy of the stocked tenant, in context."""
    with installed(tmp_path / "data", stocked), acting_as(ANNA):
        ask = Ask()
        yield ask
        ask.close()


def beside(ask: Ask) -> int:
    """Return how many contradictions an answer shows."""
    return len(ask.turn(AskRequest(question=QUESTION)).evidence.conflicts)


def test_a_pair_is_listed_with_both_passages(shelf: Ask) -> None:
    [pair] = contradictions.undecided()
    assert pair.kind == "number"
    assert (pair.trusted.doc_id, pair.other.doc_id) == ("faq.md", "old.md")
    assert pair.trusted.sentence == "Посуду можно вернуть в течение 30 дней."
    assert pair.other.sentence == "Посуду можно вернуть в течение 14 дней."
    assert "Сохраните чек" in pair.other.text


def test_the_newer_one_wins(shelf: Ask) -> None:
    [pair] = contradictions.undecided()
    contradictions.supersede(pair.trusted.doc_id, pair.other.doc_id)
    assert contradictions.undecided() == ()
    assert beside(shelf) == 1
    assert relations.current().successors == {"old.md": "faq.md"}


def test_a_settled_pair_is_hidden_until_taken_back(shelf: Ask) -> None:
    [pair] = contradictions.undecided()
    assert beside(shelf) == 1
    contradictions.agree(pair.other.chunk_id, pair.trusted.chunk_id)
    assert contradictions.undecided() == ()
    assert beside(shelf) == 0
    [settled] = agreements.all()
    assert settled.decided_by == "anna"
    Ingest().run([OLD])
    compare_some()
    assert contradictions.undecided() == ()
    agreements.remove(pair.trusted.chunk_id, pair.other.chunk_id)
    assert contradictions.undecided() == (pair,)
    assert beside(shelf) == 1


def test_a_pair_goes_with_the_text_that_made_it(shelf: Ask) -> None:
    Ingest().run([SourceDocument("old.md", "Вернуть посуду", "Посуду можно вернуть в течение 30 дней.")])
    assert contradictions.undecided() == ()
    assert beside(shelf) == 0


def test_the_nightly_comparison_finds_what_no_run_has_found(shelf: Ask) -> None:
    stored.replace(["old.md"], [])
    assert contradictions.undecided() == ()
    NightlyCheck(Library(Ingest().rewrite)).check_all(Event())
    assert len(contradictions.undecided()) == 1


def test_a_failed_comparison_fails_no_run(shelf: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(record: object) -> NoReturn:
        raise OSError

    monkeypatch.setattr(comparison, "_pairs", broken)
    assert Ingest().run([SourceDocument("new.md", "Новое", "Новый текст.")]).added == 1


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
