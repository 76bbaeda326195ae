"""A step that continues without its judge, model or records reports that in the turn and in the log."""

import logging
from pathlib import Path

import pytest

from components.answer import suggestions
from components.answer.suggestions import QuestionSuggester
from components.faults import collect_degraded
from components.passages import to_passage
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tests.installations import installed
from tests.turns import answer, document

SOURCE = document("Гарантия два года.", heading="Гарантия")
OTHER = document("Возврат 14 дней.", "c2", heading="Возврат")


def test_a_degraded_step_logs_the_cause_without_any_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the provider's own words")

    monkeypatch.setattr(suggestions, "_topics", fail)
    written = answer("Гарантия длится два года.", of=to_passage(SOURCE))
    with installed(tmp_path), caplog.at_level(logging.DEBUG), collect_degraded() as degraded:
        Registry().add("shop")
        with acting_as(Tenant("shop", "anna", SCOPES)):
            QuestionSuggester().run(documents=[SOURCE, OTHER], answers=[written])
    assert list(degraded) == ["suggestions"]
    (logged,) = [one.getMessage() for one in caplog.records if one.name == "opora.steps"]
    assert logged.startswith("without suggestions: ")
    assert ".py:" in logged, "where it came from"
    assert "own words" not in caplog.text
    assert "арантия" not in caplog.text
