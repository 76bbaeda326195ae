import json
from collections.abc import Iterator
from io import StringIO
from math import isclose
from pathlib import Path

import pytest
from rich.console import Console

from components.ingest.document import SourceDocument
from components.turn import Citation, Claim, Draft, Evidence, Passage, Reply, Turn
from evaluation import workspace
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.report import SetReport, Skipped, as_json, print_set, print_targets
from evaluation.run import Evaluation, recorded
from settings import get_settings
from tenants import database, index

ARTICLES = {
    "drain": ("Слив", "Если вода не сливается, прочистите фильтр насоса. Фильтр находится внизу справа."),
    "return": ("Возврат", "Вернуть товар можно в течение 7 дней после покупки. Деньги вернутся на карту."),
    "delivery": ("Доставка", "Доставка по городу стоит 500 рублей. Курьер приедет на следующий день."),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("DATA_DIR", "DATABASE_URL", "QDRANT_URL", "RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_DAY"):
        monkeypatch.setenv(f"OPORA_{name}", "1")  # remembered, so that what `enter` sets is undone
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield workspace.enter(tmp_path)
    index.close_all()
    database.close_all()
    get_settings.cache_clear()


def documents() -> Iterator[SourceDocument]:
    for doc_id, (title, text) in ARTICLES.items():
        yield SourceDocument(doc_id, title, text, markup="plain")


SHOP = QuestionSet(
    "shop",
    Corpus("shop", "ru", documents),
    (
        Case("1", "За сколько дней можно вернуть товар?", "ru", True, ("return",), ("7 дней",)),
        Case("2", "Сколько стоит доставка по городу?", "ru", True, ("delivery",), ("500 рублей",)),
        Case("3", "Когда родился Александр Пушкин?", "ru", False),
    ),
)


def test_a_set_is_measured_through_the_products_own_use_cases(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    evaluation = Evaluation(lambda what, done, total: told.append((what, done, total)))
    report = evaluation.run(SHOP)
    evaluation.close()
    assert folder.is_relative_to(get_settings().data_dir)
    assert report.n == 3
    assert report.figures["hit@1"].value == 1.0
    assert report.figures["hit@1"].n == 2
    assert report.figures["gold_span_in_three_sentences"].value == 1.0
    assert report.figures["citation_precision_entailed"].value == 1.0
    assert report.figures["over_refusal"].value == 0.0
    assert report.figures["false_answer"].value == 0.0
    assert report.reference["hit@1"].value == 1.0
    assert isclose(sum(report.outcomes.values()), 3)
    assert report.curve[-1].over_refusal == 1.0
    assert report.failures == ()
    assert ("shop", 3, 3) in told


def test_of_a_turn_is_kept_what_was_shown_and_what_it_stands_on() -> None:
    text = "Вернуть товар можно за 7 дней. Ещё можно обменять."
    passage = Passage("c1", "return", "Возврат", "", text, ((0, 30), (31, 50)))
    draft = Draft(
        "Вернуть товар можно за 7 дней. [1] Ещё можно обменять. [2]",
        (Claim("Вернуть товар можно за 7 дней. [1]", (1,)), Claim("Ещё можно обменять. [2]", (2,))),
        (Citation(1, passage, text[:30], (0, 30)), Citation(2, passage, "Ещё нельзя обменять.", (31, 50))),
    )
    turn = Turn(
        "t",
        "?",
        evidence=Evidence((passage, passage), adequacy=0.7),
        draft=draft,
        outcome="answered",
        reply=Reply(draft.text),
    )
    record = recorded(Case("1", "?"), turn, 5.0)
    assert record.ranked == ("return",)
    assert record.score == 0.7
    assert [sentence.text for sentence in record.sentences] == ["Вернуть товар можно за 7 дней.", "Ещё можно обменять."]
    assert [quote.genuine for sentence in record.sentences for quote in sentence.quotes] == [True, False]


def test_a_report_is_printed_and_is_json(folder: Path) -> None:
    evaluation = Evaluation(lambda what, done, total: None)
    report = evaluation.run(SHOP)
    evaluation.close()
    shown = StringIO()
    console = Console(file=shown, width=120)
    print_set(console, report, "en")
    print_targets(console, report.targets(), "en")
    assert "gold_span_in_three_sentences" in shown.getvalue()
    assert "Outcomes:" in shown.getvalue()
    whole = json.loads(json.dumps(as_json([report], [Skipped("wixqa", Path("x"))]), allow_nan=False))
    assert whole["skipped"] == [{"name": "wixqa", "reason": "absent"}]
    assert whole["sets"][0]["curve"][-1] == [None, 1.0, 0.0]
    assert whole["targets"] == []


def test_targets_of_a_set_are_judged_with_its_report() -> None:
    report = SetReport("fixture", 0, 0.0, {})
    assert report.targets() == []
