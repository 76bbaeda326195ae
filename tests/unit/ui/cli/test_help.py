"""Texts of the terminal: help pages and the outcome of a turn."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import cli
from ui.cli.ask import _outcome


@pytest.mark.parametrize("command", [(), ("gap",), ("gap", "list"), ("ask",), ("evaluate",)])
def test_help_is_in_the_language_of_the_terminal(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    shown = CliRunner().invoke(cli.app, [*command, "--help"]).stdout
    assert "Использование: " in shown
    assert "Показать эту справку и выйти." in shown
    assert not [word for word in ("Usage", " Options ", " Commands ", " Arguments ") if word in shown]


@dataclass
class _Refused:
    articles: tuple[str, ...] = ()
    outcome: str = "refused"
    refusal_reason: str = "no_relevant_context"
    routing: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(intent="question"))


def test_a_refusal_that_offers_articles_does_not_deny_an_answer() -> None:
    assert _outcome(_Refused(), "ru") == "отказ: в базе знаний нет ответа"  # type: ignore[arg-type]
    assert _outcome(_Refused(("Возврат",)), "ru") == "уверенного ответа нет, предложены ближайшие статьи"  # type: ignore[arg-type]
