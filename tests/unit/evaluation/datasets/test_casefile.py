import json
import re
from pathlib import Path

import pytest

from evaluation.datasets.casefile import CaseRow, read_cases
from tenants.core.errors import Invalid
from tests.pages import PAGES, marked

CASES = PAGES["docs/develop/evaluation.md"]


def write_cases(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def fields_table() -> str:
    """Return the table of fields for the page: copy it from the failing test."""
    rows = [f"| `{name}` | {field.description} |" for name, field in CaseRow.model_fields.items()]
    return "\n".join(["| field | what it says |", "|---|---|", *rows])


def test_the_documented_fields_match_the_code() -> None:
    assert marked(CASES, "fields") == fields_table()


def test_the_examples_can_be_read(tmp_path: Path) -> None:
    example, *_ = re.findall(r"```json\n(.*?)```", CASES, re.DOTALL)
    cases = read_cases(write_cases(tmp_path / "cases.jsonl", example))
    assert [case.answerable for case in cases] == [True, False, True, None]
    assert [case.demands for case in cases] == [True, False, False, False]
    assert cases[2].history == ("How do I return an item?",)
    assert cases[3].intents == ("wants_human",)


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        (("{",), "cases_unreadable", 1),
        (("", '{"id": "1", "question": ""}'), "cases_unreadable", 2),
        (('{"id": "1", "question": "?", "gold": []}',), "cases_unreadable", 1),
        (('{"id": "1", "question": "?", "expected_outcome": "maybe"}',), "cases_unreadable", 1),
        (('{"id": "1", "question": "?"}', '{"id": "1", "question": "!"}'), "case_repeated", 2),
        (("", " "), "cases_empty", None),
    ],
)
def test_an_invalid_file_is_refused_with_its_line(
    tmp_path: Path, lines: tuple[str, ...], code: str, line: int | None
) -> None:
    with pytest.raises(Invalid) as refused:
        read_cases(write_cases(tmp_path / "cases.jsonl", *lines))
    assert refused.value.code == code
    assert refused.value.params.get("line") == line


@pytest.mark.parametrize(
    ("fields", "answerable"),
    [
        ({}, None),
        ({"expected_outcome": "answered"}, True),
        ({"expected_outcome": "refused", "expected_reason": "no_relevant_context"}, False),
        ({"expected_outcome": "refused", "expected_reason": "unverified_answer"}, None),
        ({"expected_outcome": "answered", "answerable": False}, False),
    ],
)
def test_answerability_follows_from_the_expected_outcome(fields: dict[str, object], answerable: bool | None) -> None:
    row = CaseRow.model_validate_json(json.dumps({"id": "1", "question": "?", **fields}))
    assert row.to_case().answerable is answerable
