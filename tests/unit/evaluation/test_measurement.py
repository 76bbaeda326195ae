import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from components.ingest.document import SourceDocument
from components.turn import Article, Citation, Claim, Draft, Evidence, Passage, Reply, Turn
from evaluation import workspace
from evaluation.asking import REJECTED, recorded
from evaluation.cases import Case, Corpus, QuestionSet, Record, Skipped
from evaluation.compare import compare
from evaluation.measurement import Evaluation, Plan, finished, measure
from evaluation.metrics.results import report, reported
from evaluation.report.data import as_json
from evaluation.report.junit import as_junit
from evaluation.report.page import as_page
from evaluation.report.tables import ending, print_comparison, print_set, print_targets, requirement
from evaluation.stored_runs import Runs, SetRun
from settings import get_settings
from tenants import index
from tenants.core.errors import Invalid, NotFound
from tenants.storage import database
from tenants.work import locks

ARTICLES = {
    "drain": ("Слив", "Если вода не сливается, прочистите фильтр насоса. Фильтр находится внизу справа."),
    "return": ("Как вернуть товар", "Вернуть товар можно в течение 7 дней после покупки. Деньги вернутся на карту."),
    "delivery": ("Сколько стоит доставка", "Доставка по городу стоит 500 рублей. Курьер приедет на следующий день."),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Evaluation's own data folder, entered."""
    for name in ("DATA_DIR", "DATABASE_URL", "QDRANT_URL", "RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_DAY"):
        monkeypatch.setenv(f"OPORA_{name}", "1")  # remembered, so that what `enter` sets is undone
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield workspace.enter(tmp_path)
    index.close_all()
    locks.close_all()
    database.close_all()
    get_settings.cache_clear()


def documents() -> Iterator[SourceDocument]:
    for doc_id, (title, text) in ARTICLES.items():
        yield SourceDocument(doc_id, title, text, markup="plain")


SHOP = QuestionSet(
    "shop",
    Corpus("shop", "ru", documents),
    (
        Case("1", "Как вернуть товар?", "ru", True, ("return",), ("7 дней",)),
        Case("2", "Сколько стоит доставка по городу?", "ru", True, ("delivery",), ("500 рублей",)),
        Case("3", "Когда родился Александр Пушкин?", "ru", False),
    ),
)


def measured(chosen: QuestionSet = SHOP, concurrency: int = 1) -> SetRun:
    evaluation = Evaluation(Plan(concurrency=concurrency), lambda what, done, total: None)
    set_run = evaluation.run(chosen)
    evaluation.close()
    return set_run


def test_a_question_that_cannot_be_asked_ends_as_a_refused_request(folder: Path) -> None:
    odd = QuestionSet("odd", SHOP.corpus, (Case("1", " "), Case("2", "Что?", history=("Здравствуйте",))))
    set_run = measured(odd)
    assert set_run.records[0].outcome == REJECTED
    assert report(set_run).figures["survived"].value == 1.0


def test_sets_are_measured_one_after_another(folder: Path) -> None:
    other = replace(SHOP, name="other")
    runs = list(measure([SHOP, Skipped("absent", folder), other], Plan(), lambda what, done, total: None))
    assert [run.name for run in runs] == ["shop", "absent", "other"]


def test_a_record_keeps_the_shown_text_and_its_sources() -> None:
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
        evidence=Evidence((passage, passage), relevance_by_chunk={"c1": 0.8}, adequacy=0.7),
        draft=draft,
        outcome="answered",
        reply=Reply(draft.text),
    )
    record = recorded(Case("1", "?"), turn)
    assert record.ranked == ("return",)
    assert record.score == 0.7
    assert (record.passages[0].doc_id, record.passages[0].relevance) == ("return", 0.8)
    assert [sentence.text for sentence in record.sentences] == ["Вернуть товар можно за 7 дней.", "Ещё можно обменять."]
    assert [quote.genuine for sentence in record.sentences for quote in sentence.quotes] == [True, False]
    assert not record.checked, "nobody checked these claims"


def test_a_run_is_kept_and_read_back_to_the_letter(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    set_run = SetRun("s", "ru", 1.5, records=(Record(Case("1", "?", gold_docs=("a",)), "refused", ranked=("a",)),))
    first, second = finished("s", [set_run, Skipped("wixqa", Path("x"))], Plan()), finished("s", [set_run], Plan())
    for run in (first, second):
        runs.save(run)
    assert runs.load(first.run_id) == runs.load("latest~1") == first
    assert runs.load("latest") == second
    assert first.skipped == ("wixqa",)
    assert "evaluate_retrieval" in first.state.parameters
    for wrong in ("latest~2", "latest~x", "nothing"):
        with pytest.raises(NotFound):
            runs.load(wrong)
    with pytest.raises(Invalid):
        runs.load(first.run_id[:4])
    broken = tmp_path / "broken"
    broken.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(Invalid):
        runs.load(str(broken))


def test_a_failed_case_is_described_in_words() -> None:
    mill = Case("1", "Что значит P07?", outcome="answered", must_contain=("жернова",), must_not_contain=("24 месяца",))
    shown = Record(mill, "answered", text="Гарантия 24 месяца.")
    assert requirement(shown, "ru") == "текст содержит «жернова»; в тексте нет «24 месяца»"
    assert requirement(shown, "en") == "the text contains “жернова”; the text does not contain “24 месяца”"
    assert requirement(Record(replace(mill, outcome=""), "answered", text="Жернова."), "ru") == ""
    assert requirement(Record(mill, "refused"), "ru") == ending(shown, "ru") == "ответ"
    near = Article(Passage("c", "d", "Гарантия", "", "24 месяца", ()), "", 0.5)
    offers = Turn("t", "?", outcome="refused", reason="no_relevant_context", reply=Reply("Вот", articles=(near,)))
    assert ending(recorded(mill, offers), "ru") == "прямого ответа нет, есть близкие статьи"
    assert ending(recorded(mill, replace(offers, reply=Reply("Нет"))), "ru") == "отказ"


def test_a_report_names_the_steps_that_failed() -> None:
    case = Case("1", "Сколько стоит доставка?")
    records = tuple(Record(case, "refused", degraded=steps) for steps in (("embedder",), ("embedder", "verifier"), ()))
    run = finished("shop", [SetRun("shop", "ru", 1.0, records=records)], Plan())
    shown = StringIO()
    print_set(Console(file=shown, width=120), reported(run)[0], "en")
    line = "Steps that failed, with the number of cases: search by meaning 2, claim check 1"
    assert line in shown.getvalue()
    assert line in as_page(run, reported(run), "en")


def test_a_report_is_a_table_json_junit_and_a_page(folder: Path) -> None:
    demanding = QuestionSet(
        "shop",
        SHOP.corpus,
        (*SHOP.cases, Case("<4>", "Сколько стоит \x07доставка?", outcome="answered", must_contain=("<i>даром</i>",))),
    )
    run = finished("shop", [measured(demanding), Skipped("wixqa", Path("x"))], Plan())
    reports = reported(run)
    shown = StringIO()
    console = Console(file=shown, width=120)
    print_set(console, reports[0], "en")
    print_targets(console, reports[0].targets(), "en")
    print_comparison(console, compare(run, run), "en")
    assert "Right answer in the reply" in shown.getvalue()
    assert "Outcomes:" in shown.getvalue()
    in_russian = StringIO()
    print_set(Console(file=in_russian, width=200), reports[0], "ru")
    assert "Исходы: ответ " in in_russian.getvalue()
    assert "→ ответ: " in in_russian.getvalue()
    assert "* Завершилось как требуется" in in_russian.getvalue()
    report_json = json.loads(json.dumps(as_json(run, reports), allow_nan=False))
    assert report_json["skipped"] == [{"name": "wixqa", "reason": "absent"}]
    assert report_json["targets"] == []
    suites = ElementTree.fromstring(as_junit(run, reports, "en"))
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [("shop", "1"), ("wixqa", None)]
    page = as_page(run, reports, "en")
    assert "&lt;i&gt;даром&lt;/i&gt;" in page
    assert "<i>даром</i>" not in page
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import|<script", page), "the page asks for something"
    plotted = re.findall(r">([^<]*\d[.,]\d[^<]*)</(?:span|title|text)>", as_page(run, reports, "ru"))
    assert plotted
    assert not [words for words in plotted if re.search(r"\d\.\d|\d%", words)]
