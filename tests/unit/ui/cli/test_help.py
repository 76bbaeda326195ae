"""Texts of the terminal: help pages and the outcome of a turn."""

from dataclasses import dataclass, field
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner

import cli
from ui.cli.ask import _outcome, _print_text


@pytest.mark.parametrize("command", [(), ("gap",), ("gap", "list"), ("ask",), ("evaluate",)])
def test_help_is_in_the_language_of_the_terminal(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    shown = CliRunner().invoke(cli.app, [*command, "--help"]).stdout
    assert "Использование: " in shown
    assert "Показать эту справку и выйти." in shown
    english = (
        "Usage",
        " Options ",
        " Commands ",
        " Arguments ",
        "OPTIONS",
        "ARGS",
        "required",
        "default:",
        "<str>",
        "<bool>",
    )
    assert not [word for word in english if word in shown]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("ask x --trace", "Нет такого параметра: --trace"),
        ("ask x --contac", "Нет такого параметра: --contac. Возможно, вы имели в виду --contact?"),
        ("zzz", "Нет такой команды: zzz"),
        ("tenant lst", "Нет такой команды: lst. Возможно, вы имели в виду 'list'?"),
        ("ask", "Не указан аргумент question"),
        ("ask x y", "Лишние аргументы: y. Текст из нескольких слов возьмите в кавычки."),
        ("ask x --contact", "Для параметра --contact нужно значение."),
        ("serve --port x", "Недопустимое значение --port: "),
        ("--trace", "Нет такого параметра: --trace"),
    ],
)
def test_usage_errors_are_in_the_language_of_the_terminal(
    command: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    shown = CliRunner().invoke(cli.app, command.split()).stderr
    assert error in shown
    assert not [word for word in ("Error", "Try ", "Usage") if word in shown]


def test_a_table_in_an_answer_is_a_table_of_the_terminal() -> None:
    shown = StringIO()
    _print_text(Console(file=shown, width=80), "| Boat | Price |\n| --- | --- |\n| Canoe | 45 \\| 70 | [1]\nAsk us.")
    assert [line.split() for line in shown.getvalue().splitlines() if line.strip(" ─")] == [
        ["Boat", "Price"],
        ["Canoe", "45", "|", "70"],
        ["[1]"],
        ["Ask", "us."],
    ]


@dataclass
class _Refused:
    articles: tuple[str, ...] = ()
    outcome: str = "refused"
    refusal_reason: str = "no_relevant_context"
    routing: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(intent="question"))


def test_a_refusal_that_offers_articles_does_not_deny_an_answer() -> None:
    assert _outcome(_Refused(), "ru") == "отказ: в базе знаний нет ответа"  # type: ignore[arg-type]
    assert _outcome(_Refused(("Возврат",)), "ru") == "прямого ответа нет, есть близкие статьи"  # type: ignore[arg-type]
