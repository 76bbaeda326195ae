"""`opora insight` and its twin, on a tenant with a few chats."""

import csv
import io
import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from cli import app
from pipelines.ask import insight
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core.context import Tenant, acting_as
from tests import desk


@pytest.fixture
def acme(installation: Settings) -> Iterator[None]:
    Registry(installation).add("acme", locale="ru")
    desk.answered("acme", desk.asked("acme", "v:1", "Где заказ?"), "Едет.")
    with acting_as(Tenant("acme", "anna")):
        chat = desk.asked("acme", "v:2", "Позовите человека")
        store.reply(chat.chat_id, "Здравствуйте!", seen=1, name="Анна")
        store.resolve(chat.chat_id)
        yield


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["insight", *arguments, "--tenant", "acme"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_figures_are_printed_and_are_those_of_the_use_case(acme: None) -> None:
    shown = json.loads(_run("show", "--json"))
    assert shown["schema"] == "insight.v1"
    assert (shown["chats"]["total"], shown["chats"]["assisted"], shown["chats"]["open"]) == (2, 1, 1)
    assert shown["chats"]["rates"] == {"autonomous": 0.0, "assisted": 1.0, "reopened": 0.0, "unresolved": 0.0}
    assert sum(day["total"] for day in shown["chats"]["by_day"].values()) == 2
    assert shown["chats"]["by_outcome"]["answered"]["total"] == 1
    assert len(shown["chats"]["by_day"]) == insight.DAYS
    printed = _run("show", "--days", "7")
    assert "1" in printed
    assert "100%" in printed


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_chats_are_exported_without_their_customers(acme: None, kind: str) -> None:
    exported = _run("export", "--format", kind)
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(exported.removeprefix("\ufeff"))))
    else:
        rows = [json.loads(line) for line in exported.splitlines()]
    assert [row["result"] for row in rows] == ["open", "assisted"]
    assert "v:1" not in exported


@pytest.mark.parametrize(
    "arguments", [("show", "--since", "2026-02-01", "--until", "2026-01-01"), ("export", "--format", "xlsx")]
)
def test_what_is_no_period_or_format_is_refused_in_words(acme: None, arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["insight", *arguments, "--tenant", "acme"])
    assert result.exit_code != 0
