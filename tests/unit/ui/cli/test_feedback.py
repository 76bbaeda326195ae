"""`opora feedback` in the terminal, and the cases it exports."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from evaluation.datasets.casefile import read_cases
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.core.context import Tenant, acting_as
from tenants.desk import feedback
from tests.audits import entry


@pytest.fixture(autouse=True)
def _judged(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant with two judged turns and one without a verdict."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "250")
    Registry().add("shop")
    turns = [
        entry("t1", tenant_id="shop", cited={"returns.md": ["r1", "r2"]}, question="Как вернуть?"),
        entry("t2", tenant_id="shop", question="Где чек?"),
        entry("t3", tenant_id="shop"),
    ]
    store.append(turns, installation)
    with acting_as(Tenant("shop", "anna")):
        feedback.give("t1", "anna", "up")
        feedback.give("t2", "anna", "up")
        feedback.give("t2", "bob", "down", "outdated", "Уже не так.")


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["feedback", *arguments, "--tenant", "shop"])


def test_verdicts_are_listed() -> None:
    (down,) = json.loads(opora("list", "--thumb", "down", "--json").stdout)
    assert (down["turn_id"], down["reason"], down["question"]) == ("t2", "outdated", "Где чек?")
    assert [row["turn_id"] for row in json.loads(opora("list", "--last", "2", "--json").stdout)] == ["t2", "t2"]
    table = opora("list").stdout
    assert "did not help" in table
    assert "Уже не так." in table
    refused = opora("list", "--thumb", "sideways")
    assert (refused.exit_code, "Choose up or down" in refused.stderr) == (2, True)


def test_verdicts_become_cases_that_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(opora("cases").stdout, encoding="utf-8")
    doubted, praised = read_cases(file)
    assert (doubted.case_id, doubted.question, doubted.tags) == (
        "t2",
        "Где чек?",
        ("feedback", "down", "up", "outdated"),
    )
    assert (doubted.outcome, doubted.gold_docs) == ("", ())
    assert (praised.case_id, praised.tags, praised.outcome) == ("t1", ("feedback", "up"), "answered")
    assert praised.gold_docs == ("returns.md",)
    assert [json.loads(line)["id"] for line in opora("cases", "--thumb", "down").stdout.splitlines()] == ["t2"]


def test_a_real_turn_becomes_a_case_with_language_and_history(tmp_path: Path) -> None:
    ask = Ask()
    with acting_as(Tenant("shop", "anna")):
        ask.answer(AskRequest(question="Здравствуйте", session_id="one"))
        turn_id = ask.answer(AskRequest(question="Варить яйца? Пишите на a@mail.ru", session_id="one")).turn_id
        ask.close()
        given = ask.judge(turn_id, "down", "incomplete", "Мой номер +7 916 123-45-67")
    assert given.comment == "Мой номер [phone]"
    file = tmp_path / "cases.jsonl"
    file.write_text(opora("cases").stdout, encoding="utf-8")
    case = read_cases(file)[0]
    assert (case.case_id, case.question, case.locale) == (turn_id, "Варить яйца? Пишите на [email]", "ru")
    assert (case.history, case.tags) == (("Здравствуйте",), ("feedback", "down", "incomplete"))
