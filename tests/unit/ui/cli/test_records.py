"""`opora audit`, `gap`, `person` and `replay` in the terminal."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update
from typer.testing import CliRunner, Result

import cli
from pipelines.ask.engine import YAML
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import documents
from tenants.knowledge.documents import DocumentRecord
from tenants.privacy import persons
from tenants.storage import database
from tenants.storage.audit_tables import AuditRow
from tests.audits import AT, entry, miss


@pytest.fixture(autouse=True)
def turns(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant with three recorded turns."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "250")
    Registry().add("shop")
    missing = miss("Есть ли рассрочка?", "рассрочк", doc_ids=("payment.md",))
    anna, bob = persons.digest("shop", "anna"), persons.digest("shop", "bob")
    store.append(
        [
            entry("t1", tenant_id="shop", person=anna, cited={"returns.md": ["r1"]}, question="Как вернуть?"),
            entry(
                "t2",
                tenant_id="shop",
                at=AT.replace(day=2),
                person=bob,
                outcome="refused",
                reason="no_relevant_context",
                question="Есть ли рассрочка?",
                misses=[missing],
            ),
            entry("t3", tenant_id="shop", at=datetime.now(UTC), person=bob, cited={"returns.md": ["r1"]}),
        ],
        installation,
    )
    with acting_as(Tenant("shop", "cli")):
        documents.put(DocumentRecord("returns.md", "Возврат", "returns.md", "h", ("r2",), "2020-01-01"))


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, [*arguments, "--tenant", "shop"])


def listed(*options: str) -> list[str]:
    return [row["turn_id"] for row in json.loads(opora("audit", "list", "--json", *options).stdout)]


def test_turns_are_listed_by_what_is_asked_for() -> None:
    assert listed() == ["t3", "t2", "t1"]
    assert listed("--last", "1") == ["t3"]
    assert listed("--outcome", "refused") == ["t2"]
    assert listed("--reason", "no_relevant_context") == ["t2"]
    assert listed("--document", "returns.md") == ["t3", "t1"]
    assert listed("--text", "РАССРОЧКА") == ["t2"]
    assert listed("--subject", "anna") == ["t1"]
    assert listed("--session", "s", "--until", "2024-11-01T13:00:00") == ["t1"]
    assert listed("--since", "2024-11-02") == ["t3", "t2"]
    table = opora("audit", "list").stdout
    assert "no_relevant_context" in table
    assert "Есть ли рассрочка?" in table


def test_insight_prints_outcomes_in_words() -> None:
    assert "│ answer " in opora("insight", "show").stdout


def test_one_turn_is_shown_whole() -> None:
    shown = json.loads(opora("audit", "show", "t2").stdout)
    assert (shown["question"], shown["content"]["request"]["question"]) == ("Есть ли рассрочка?",) * 2
    assert opora("audit", "show", "t9").exit_code == 2


def test_a_touched_audit_is_told_with_an_exit_code() -> None:
    verified = opora("audit", "verify")
    assert (verified.exit_code, "The audit is intact." in verified.stdout) == (0, True)
    head = json.loads(opora("audit", "verify", "--json").stdout)["head"]
    anchor = f"{head['sequence']}:{head['hash']}"
    assert anchor in verified.stdout
    assert opora("audit", "verify", "--head", anchor).exit_code == 0
    assert opora("audit", "verify", "--head", f"{head['sequence']}:{'0' * 64}").exit_code == 1
    assert opora("audit", "verify", "--head", "nonsense").exit_code == 2
    with database.across_tenants(write=True) as session:
        session.execute(update(AuditRow).where(AuditRow.turn_id == "t1").values(outcome="refused"))
    broken = opora("audit", "verify")
    assert broken.exit_code == 1
    assert "1 t1: the record was changed" in broken.stderr


def test_the_chain_is_exported(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in opora("audit", "export").stdout.splitlines()]
    assert [(line["sequence"], line["turn_id"]) for line in lines] == [(1, "t1"), (2, "t2"), (3, "t3")]
    assert lines[1]["previous"] == lines[0]["hash"]
    out = tmp_path / "audit.jsonl"
    assert opora("audit", "export", "--since", "2024-11-02", "--out", str(out)).exit_code == 0
    assert [json.loads(line)["turn_id"] for line in out.read_text(encoding="utf-8").splitlines()] == ["t2", "t3"]


def test_a_gap_is_listed_dismissed_and_reopened() -> None:
    ((gap,),) = json.loads(opora("gap", "list", "--json").stdout)
    assert (gap["question"], gap["count"], gap["doc_ids"]) == ("Есть ли рассрочка?", 1, ["payment.md"])
    shown = opora("gap", "list").stdout
    assert gap["gap_id"] in shown
    assert "payment.md" in shown
    refused = opora("gap", "close", gap["gap_id"])
    assert (refused.exit_code, "does not answer" in refused.stderr) == (2, True)
    assert json.loads(opora("gap", "list", "--closed", "--json").stdout) == []
    assert "Dismissed" in opora("gap", "dismiss", gap["gap_id"]).stdout
    assert json.loads(opora("gap", "list", "--json").stdout) == []
    assert "Open again" in opora("gap", "reopen", gap["gap_id"]).stdout
    assert "Dismissed" in opora("gap", "dismiss", gap["gap_id"]).stdout
    assert len(json.loads(opora("gap", "list", "--dismissed", "--json").stdout)) == 1
    assert json.loads(opora("gap", "list", "--dismissed", "--text", "попугай", "--json").stdout) == []
    assert opora("gap", "close", "nothing").exit_code == 2


@pytest.mark.parametrize("group", ["audit", "person"])
def test_a_person_is_exported_and_erased(group: str) -> None:
    exported = json.loads(opora("person", "export", "--subject", "bob").stdout)
    assert [turn["request"]["question"] for turn in exported["turns"]] == ["Вопрос?", "Есть ли рассрочка?"]
    assert json.loads(opora(group, "erase", "--subject", "bob", "--json").stdout)["turns"] == 2
    assert "(erased)" in opora("audit", "list").stdout
    assert json.loads(opora("gap", "list", "--json").stdout) == []
    assert opora("audit", "verify").exit_code == 0
    assert "Erased: 0 answers" in opora(group, "erase", "--subject", "bob").stdout
    assert opora(group, "erase").exit_code == 2


@pytest.mark.parametrize("act", ["export", "erase"])
def test_a_site_that_does_not_exist_is_refused_with_those_that_do(act: str) -> None:
    with acting_as(Tenant("shop", "cli")):
        sites.add("Shop", [], key="shop-site")
    refused = opora("person", act, "--subject", "bob", "--site", "")
    assert (refused.exit_code, "shop-site (Shop)" in refused.stderr) == (2, True)
    refused = opora("person", act, "--session", "s1", "--site", "shop-site")
    assert (refused.exit_code, "without --site" in refused.stderr) == (2, True)


def test_stale_documents_are_listed_with_their_doubts() -> None:
    (stale,) = json.loads(opora("audit", "stale", "--json").stdout)
    assert (stale["doc_id"], stale["doubts"], stale["citations"]) == ("returns.md", ["changed", "old"], 1)
    (stale,) = json.loads(opora("audit", "stale", "--json", "--cited-days", "9999", "--older-days", "9999").stdout)
    assert (stale["doubts"], stale["citations"]) == (["changed"], 2)
    assert "changed since it was cited" in opora("audit", "stale").stdout


def test_turns_are_replayed(tmp_path: Path) -> None:
    opora("ask", "Как вернуть товар?")
    report = json.loads(opora("replay", "--json", "--last", "1").stdout)
    assert (report["asked"], report["changed"], report["turns"]) == (1, 0, [])
    lenient = tmp_path / "policy.json"
    lenient.write_text('{"top_k": 3}', encoding="utf-8")
    tried = opora("replay", "--pipeline", str(YAML), "--policy", str(lenient), "--knowledge", "shop", "--last", "1")
    assert "Asked: 1, erased: 0. Changed: 0" in tried.stdout
    lenient.write_text("[]", encoding="utf-8")
    assert opora("replay", "--policy", str(lenient)).exit_code == 2
    broken = tmp_path / "broken.yaml"
    broken.write_text("components: 3", encoding="utf-8")
    assert opora("replay", "--pipeline", str(broken)).exit_code == 2


def test_a_change_is_printed_side_by_side() -> None:
    """The recorded turn was answered; its article was removed, so it would be refused now."""
    with acting_as(Tenant("shop", "cli")):
        documents.remove("returns.md")
    printed = opora("replay", "--document", "returns.md", "--outcome", "answered", "--until", "2024-11-02").stdout
    assert "Как вернуть?" in printed
    assert "before" in printed
    assert "refused / no_relevant_context" in printed
    assert "Changed: 1, with another outcome: 1" in printed
