"""Answer keys as files, the knowledge base of their passages, and graded verdicts."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.datasets.answer_keys import graded_answers, over_own_passages, read_key
from evaluation.datasets.rows import MissingData
from evaluation.datasets.thumbs import graded_thumbs
from evaluation.metrics.accuracy_coverage import GradedClaim
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.audit.entry import Entry, canonical
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.desk import feedback
from tests.audits import entry
from tests.pages import PAGES

PASSAGES = [
    {"doc_id": "returns", "title": "Возврат", "heading": "Срок", "text": "Вернуть можно за 14 дней.", "grade": 2},
    {"doc_id": "returns", "title": "Возврат", "heading": "", "text": "О возврате товара.", "grade": 0},
    {"doc_id": "receipt", "title": "Чек", "heading": "Где он", "text": "Чек в кабинете.", "grade": 1},
]
ROW = {"id": 7, "question": "Как вернуть?", "type": "howto", "facts": ["14 дней"], "passages": PASSAGES}


GUIDE = PAGES["docs/develop/evaluation.md"]


def write_key(path: Path, *rows: Mapping[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_key_is_read_with_what_follows_from_its_grades(tmp_path: Path) -> None:
    key = write_key(
        tmp_path / "key.jsonl",
        ROW,
        ROW | {"id": "8", "passages": PASSAGES[1:]},
        ROW | {"passages": PASSAGES[1:2], "facts": []},
        ROW | {"answerable": "no"},
    )
    cases = read_key(key)
    assert [case.case_id for case in cases[:2]] == ["7", "8"]
    assert [case.key.answerable for case in cases if case.key] == ["yes", "partly", "no", "no"]
    assert [case.answerable for case in cases] == [True, None, False, False]
    assert cases[0].gold_docs == ("returns", "receipt")
    assert cases[0].locale == "ru"


def test_a_block_of_code_that_was_cut_swallows_no_other_passage(tmp_path: Path) -> None:
    cut = [{**PASSAGES[0], "text": "Выполните:\n```bash\nls"}, PASSAGES[2]]
    chosen = over_own_passages("own", read_key(write_key(tmp_path / "key.jsonl", ROW | {"passages": cut})))
    assert all(article.text.count("```") % 2 == 0 for article in chosen.corpus.documents())


def test_passages_become_articles_with_each_once(tmp_path: Path) -> None:
    chosen = over_own_passages("own", read_key(write_key(tmp_path / "key.jsonl", ROW, ROW | {"id": 8})))
    articles = {article.doc_id: article for article in chosen.corpus.documents()}
    assert articles["returns"].text == "О возврате товара.\n\n## Срок\n\nВернуть можно за 14 дней."
    assert (articles["receipt"].title, chosen.corpus.locale) == ("Чек", "ru")


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Как?"},
        ROW | {"question": " "},
        ROW | {"answerable": "maybe"},
        ROW | {"passages": [PASSAGES[0] | {"grade": 3}]},
        ROW | {"passages": [{"doc_id": "a", "grade": 1}]},
    ],
)
def test_a_line_that_is_no_question_of_a_key_is_refused(row: Mapping[str, object], tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refused:
        read_key(write_key(tmp_path / "key.jsonl", ROW, row))
    assert (refused.value.code, refused.value.params["line"]) == ("key_unreadable", 2)


def test_invalid_json_is_refused_and_missing_data_reported(tmp_path: Path) -> None:
    broken = tmp_path / "key.jsonl"
    broken.write_text("# Ключ", encoding="utf-8")
    with pytest.raises(Invalid):
        read_key(broken)
    with pytest.raises(MissingData):
        graded_answers(tmp_path, "nobody")


def test_the_example_of_the_guide_is_a_key(tmp_path: Path) -> None:
    (example,) = (one for one in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL) if '"passages"' in one)
    file = tmp_path / "key.jsonl"
    file.write_text(example, encoding="utf-8")
    (case,) = read_key(file)
    assert case.key is not None
    assert case.key.passages[0].grade == 2


def shown(turn_id: str, confidence: float, outcome: str = "answered") -> Entry:
    audit_entry = entry(turn_id, tenant_id="shop", outcome=outcome)
    body = json.loads(audit_entry.body)
    body["answer"]["scores"] = {"confidence": confidence}
    return replace(audit_entry, body=canonical(body))


def test_an_answer_is_right_where_every_thumb_is_up(installation: Settings) -> None:
    Registry().add("shop")
    turns = [shown("t1", 0.9), shown("t2", 0.6), shown("t3", 0.4, "refused"), shown("t4", 0.8), shown("t5", 0.7)]
    store.append(turns, installation)
    with acting_as(Tenant("shop", "anna")):
        feedback.give("t1", "anna", "up")
        feedback.give("t2", "anna", "up")
        feedback.give("t2", "bob", "down", "wrong")
        feedback.give("t3", "anna", "down")
        feedback.give("t5", "anna", "down")
        assert sorted(graded_thumbs(), key=lambda one: one.confidence) == [
            GradedClaim(0.6, False),
            GradedClaim(0.7, False),
            GradedClaim(0.9, True),
        ]
