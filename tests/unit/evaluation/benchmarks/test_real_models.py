"""Whole turns with a real model, which the simulator replaces here."""

import json
from pathlib import Path

import pytest
import typer

from evaluation.benchmarks.real_models import main
from evaluation.datasets.fixture import fixture


def test_turns_are_written_for_readers_and_counted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    out = tmp_path / "turns.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(["fixture"], limit=3, concurrent=2, out=out)
    assert ended.value.code == 0
    lines = {line["id"]: line for line in map(json.loads, out.read_text(encoding="utf-8").splitlines())}
    cases = {case.case_id: case for case in fixture().cases[::4]}
    assert lines.keys() == cases.keys()
    assert all(line["question"] == cases[case_id].question for case_id, line in lines.items())
    called = [line for line in lines.values() if line["calls"]]
    assert called
    for line in called:
        assert line["calls"][0]["step"] == "answer"
        assert all(call["outcome"] == "ok" for call in line["calls"])
        assert 1 <= line["calls_in_sequence"] <= len(line["calls"])
        assert line["prompt_characters"] == sum(call["prompt_characters"] for call in line["calls"])
        assert line["tokens"]["total"] > 0
        assert bool(line["sources"]) == (line["outcome"] in {"answered", "partially_answered"})
        assert not line["hidden"] or line["outcome"] not in {"answered", "partially_answered"}
    assert "calls in sequence" in capsys.readouterr().err


def test_an_unknown_set_is_named_with_those_that_there_are() -> None:
    with pytest.raises(typer.BadParameter, match=r"nothing: none of .*vkcloud-answers"):
        main(["nothing"])
