"""`opora operator`, from the terminal."""

import json

import pytest
from typer.testing import CliRunner

import cli
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.desk import operator_sessions, operators

PASSWORD = "снег идёт над рекой"


@pytest.fixture
def run(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("LANG", "ru_RU.UTF-8")
    Registry().add("acme")
    return CliRunner()


def test_an_operator_is_added_listed_changed_and_removed(run: CliRunner) -> None:
    def opora(*words: str, typed: str = "") -> str:
        result = run.invoke(cli.app, ["operator", *words, "--tenant", "acme"], input=typed)
        assert result.exit_code == 0, result.output
        return result.output

    added = opora("add", "Anna@shop.example", "--role", "admin", "--name", "Анна", typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert "anna@shop.example" in added
    assert PASSWORD not in added
    assert "Анна" in opora("list")
    operator_sessions.begin(operators.authenticate("anna@shop.example", PASSWORD), address="", browser="")
    [listed] = json.loads(opora("list", "--json"))
    assert {name: listed[name] for name in ("login", "role", "sessions")} == {
        "login": "anna@shop.example",
        "role": "admin",
        "sessions": 1,
    }
    assert "1" in opora("sign-out", "anna@shop.example")
    opora("password", "anna@shop.example", "--password-stdin", typed="дождь шёл всю ночь\n")
    assert operators.authenticate("anna@shop.example", "дождь шёл всю ночь").name == "Анна"
    opora("remove", "anna@shop.example")
    assert json.loads(opora("list", "--json")) == []


def test_an_admin_of_the_installation_belongs_to_no_tenant(run: CliRunner) -> None:
    def opora(*words: str, typed: str = "") -> str:
        result = run.invoke(cli.app, ["operator", *words, "--installation"], input=typed)
        assert result.exit_code == 0, result.output
        return result.output

    opora("add", "root", "--password-stdin", typed=f"{PASSWORD}\n")
    opora("password", "root", "--password-stdin", typed="дождь шёл всю ночь\n")
    assert [one.login for one in operators.installation_admins()] == ["root"]
    assert "администратор установки" in opora("list")
    opora("remove", "root")
    assert operators.installation_admins() == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "anna", "--role", "king", "--password-stdin"], "operator, editor, admin"),
        (["add", "anna", "--password-stdin"], "10"),
        (["remove", "anna"], "Сотрудника с таким именем"),
        (["password", "anna", "--password-stdin"], "Сотрудника с таким именем"),
    ],
)
def test_what_does_not_fit_is_explained(run: CliRunner, words: list[str], said: str) -> None:
    result = run.invoke(cli.app, ["operator", *words, "--tenant", "acme"], input="short\n")
    assert result.exit_code == 2
    assert said in result.output
