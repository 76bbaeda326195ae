"""`opora evaluate` on a user's own tenant."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

import cli
from evaluation import report_commands
from evaluation.metrics.accuracy_coverage import GradedClaim
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from pipelines.ask.engine import YAML
from settings import ROOT, get_settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from tenants.work import locks
from tests.installations import installed

CASES = (
    {
        "id": "drain",
        "question": "Что делать, если вода не сливается?",
        "gold_doc_ids": ["drain.md"],
        "answerable": True,
    },
    {"id": "return", "question": "За сколько дней вернуть товар?", "must_contain": ["7 дней"], "tags": ["money"]},
    {"id": "absent", "question": "Когда родился Пушкин?", "answerable": False},
    {"id": "last", "question": "Вернуть товар", "sealed": True},
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("shop")
    with installed(folder / "kept"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "en_GB.UTF-8")
        articles = folder / "articles"
        articles.mkdir()
        drain = "# Что делать, если вода не сливается\n\nЕсли вода не сливается, прочистите фильтр насоса."
        (articles / "drain.md").write_text(drain, "utf-8")
        (articles / "return.md").write_text("# Как вернуть товар\n\nВернуть товар можно за 7 дней.", "utf-8")
        lines = "\n".join(json.dumps(case, ensure_ascii=False) for case in CASES)
        (folder / "cases.jsonl").write_text(lines, encoding="utf-8")
        assert opora("tenant", "add", "shop").exit_code == 0
        assert opora("ingest", str(articles), "--tenant", "shop").exit_code == 0
        yield folder


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def evaluate(*arguments: str) -> Result:
    return opora("evaluate", *arguments)


def newest_run(tenant_id: str) -> EvaluationRun:
    """Return the newest stored run of the tenant."""
    with acting_as(Tenant(tenant_id, "anna")):
        return evaluations.newest()[0]


def test_a_tenant_is_measured_kept_shown_again_and_compared(shop: Path) -> None:
    page, junit = shop / "report.html", shop / "junit.xml"
    cases = str(shop / "cases.jsonl")
    first = evaluate(cases, "--tenant", "shop", "--html", str(page), "--junit", str(junit), "--locale", "ru", "--json")
    assert first.exit_code == 0, first.output
    (measured,) = json.loads(first.stdout)["sets"]
    assert (measured["name"], measured["n"], measured["index"]["tenant"]) == ("cases", 3, "shop")
    assert measured["figures"]["hit@1"]["value"] == 1.0
    assert measured["figures"]["facts_in_answer"]["value"] == 1.0
    assert measured["figures"]["false_answer_rate"]["value"] == 0.0
    assert '<html lang="ru">' in page.read_text(encoding="utf-8")
    suite = ElementTree.parse(junit).getroot()[0]
    assert suite.get("failures") == "0"
    assert [case.get("name") for case in suite] == ["return", "absent"]
    assert [line.rpartition(": ")[2] for line in first.stderr.splitlines()[-2:]] == [str(page), str(junit)]
    assert newest_run("shop").run_id == json.loads(first.stdout)["run"]
    summary: Any = newest_run("shop").summary
    assert summary["sets"][0]["figures"]["hit@1"] == measured["figures"]["hit@1"]
    assert "Что делать" not in json.dumps(newest_run("shop").summary, ensure_ascii=False)
    assert json.loads(evaluate("runs", "--json").stdout) == [json.loads(first.stdout)["run"]]
    assert json.loads(evaluate("report", "--json").stdout) == json.loads(first.stdout)
    assert evaluate(cases, "--tenant", "shop", "--concurrency", "2").exit_code == 0
    same = evaluate("compare", "latest~1", "--json")
    assert same.exit_code == 0
    assert json.loads(same.stdout)["identical"] is True


def test_customers_own_pipeline_is_measured_with_its_model_calls(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = shop / "one.jsonl"
    cases.write_text(json.dumps(CASES[1], ensure_ascii=False), encoding="utf-8")
    assert opora("tenant", "policy", "shop", "--set", "profile=ollama").exit_code == 0
    with simulator_thread(Knobs(models=("qwen3:4b-instruct", "qwen3:30b-instruct"))) as (_, url):
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        get_settings.cache_clear()
        own, plain = (
            evaluate(str(cases), "--tenant", "shop", "--json", *options) for options in ((), ("--pipeline", str(YAML)))
        )
    monkeypatch.undo()
    get_settings.cache_clear()
    assert opora("tenant", "policy", "shop", "--unset", "profile").exit_code == 0
    assert "profiles/ollama.yaml" in own.stderr
    assert "ask/ask.yaml" in plain.stderr
    costs = [json.loads(result.stdout)["sets"][0]["figures"] for result in (own, plain)]
    assert costs[0]["llm_calls"]["value"] >= 1
    assert costs[0]["tokens"]["value"] > 10
    assert (costs[1]["llm_calls"]["value"], costs[1]["tokens"]["value"]) == (0, 0)


def test_a_running_service_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = locks.ServicePlace("127.0.0.1", 8761, "http://127.0.0.1:8761")
    monkeypatch.setattr(locks, "service_place", lambda settings: running)
    refused = evaluate(str(shop / "cases.jsonl"), "--tenant", "shop")
    assert refused.exit_code == 2
    assert "http://127.0.0.1:8761" in refused.stderr
    assert "opora evaluation run" in refused.stderr


def test_a_broken_promise_ends_a_comparison_with_1(shop: Path) -> None:
    strict = shop / "strict.yaml"
    source = YAML.read_text(encoding="utf-8")
    threshold = "threshold: *sure # least probability"
    assert source.count(threshold) == 1
    strict.write_text(source.replace(threshold, "threshold: 1.0 #"), encoding="utf-8")
    cases = str(shop / "cases.jsonl")
    assert evaluate(cases, "--tenant", "shop").exit_code == 0
    assert evaluate(cases, "--tenant", "shop", "--pipeline", str(strict)).exit_code == 0
    lost = evaluate("compare", "latest~1", "latest")
    assert lost.exit_code == 1
    assert "evaluate_retrieval.threshold: 0.45 → 1.0" in lost.stdout
    assert "Losses of 3 points or more beyond chance:" in lost.stdout
    assert "every change of it counts" in " ".join(lost.stdout.split())
    assert "return" in lost.stdout
    assert evaluate("compare", "latest", "latest~1").exit_code == 0, "a gain never fails"


def test_evaluators_are_added_on_demand(shop: Path) -> None:
    cases, evaluators = shop / "judged.jsonl", shop / "evaluators.yaml"
    rows = CASES[:3]
    cases.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    measure = (str(cases), "--tenant", "shop", "--evaluators", str(evaluators))
    example = (ROOT / "docs/examples/evaluators.yaml").read_text(encoding="utf-8")
    with simulator_thread() as (simulator, url):
        example = example.replace("http://127.0.0.1:11434", url).replace("qwen3:30b-instruct", "simulated")
        evaluators.write_text(example, encoding="utf-8")
        first = evaluate(*measure, "--json")
        assert first.exit_code == 0, first.output
        simulator.set_knobs(Knobs(faults=(Fault(kind="garbage", task="faithfulness", times=1),)))
        second = evaluate(*measure, "--locale", "ru")
    report = json.loads(first.stdout)
    figures = report["sets"][0]["figures"]
    assert (figures["faithfulness"]["value"], figures["faithfulness"]["n"]) == (1.0, 2)
    assert (figures["context_relevance"]["value"], figures["context_relevance"]["n"]) == (1.0, 2)
    assert report["sets"][0]["unjudged"] == {}
    assert report["state"]["evaluators"]["faithfulness"] == "FaithfulnessEvaluator simulated"
    assert "faithfulness: malformed 1" in second.stdout
    compared = evaluate("compare", "latest~1", "--json")
    changed = {one["figure"] for one in json.loads(compared.stdout)["differences"] if one["change"]}
    assert changed == {"evaluator_failed"}


def test_a_run_is_written_as_csv_by_haystack(shop: Path) -> None:
    assert evaluate(str(shop / "cases.jsonl"), "--tenant", "shop").exit_code == 0
    assert evaluate("report", "--csv", str(shop / "csv")).exit_code == 0
    with (shop / "csv" / "cases.answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["outcome"] for row in rows] == ["answered"] * len(rows)
    assert {float(row["citation_precision_entailed"]) for row in rows} == {1.0}
    assert {path.name for path in (shop / "csv").iterdir()} == {
        "cases.retrieval.csv",
        "cases.answers.csv",
        "cases.refusals.csv",
    }


def test_cases_are_picked_by_tag_and_sealed_ones_only_on_demand(shop: Path) -> None:
    cases = str(shop / "cases.jsonl")
    tagged = evaluate(cases, "--tenant", "shop", "--tag", "money", "--json")
    assert json.loads(tagged.stdout)["sets"][0]["n"] == 1
    everything = evaluate(cases, "--tenant", "shop", "--sealed", "--json")
    assert json.loads(everything.stdout)["sets"][0]["n"] == 4
    assert evaluate(cases, "--tenant", "shop", "--tag", "nobody").exit_code == 2


def test_mistakes_are_reported_in_one_line(shop: Path) -> None:
    broken = shop / "broken.yaml"
    broken.write_text("components: {a: {type: no.such.Thing}}", encoding="utf-8")
    cases = str(shop / "cases.jsonl")
    for wrong in (
        ("nothing",),
        (cases, "--tenant", "nobody"),
        ("fixture", "--pipeline", str(broken)),
        ("fixture", "--evaluators", str(broken)),
        ("report", "nothing"),
        ("compare", "nothing"),
    ):
        refused = evaluate(*wrong)
        assert (refused.exit_code, refused.stdout) == (2, ""), wrong
        assert refused.stderr.count("\n") == 1, refused.stderr


def test_a_small_run_explains_its_missing_threshold(shop: Path) -> None:
    assert evaluate(str(shop / "cases.jsonl"), "--tenant", "shop").exit_code == 0
    assert "No threshold found: with 0 graded answers" in evaluate("calibrate", "latest").stdout


KEY = (
    {
        "id": "drain",
        "question": "Что делать, если вода не сливается?",
        "type": "howto",
        "facts": ["прочистите фильтр насоса"],
        "passages": [
            {
                "doc_id": "drain.md",
                "title": "Что делать, если вода не сливается",
                "heading": "",
                "text": "Если вода не сливается, прочистите фильтр насоса.",
                "grade": 2,
            }
        ],
    },
    {"id": "absent", "question": "Когда родился Пушкин?", "type": "what_is", "facts": [], "passages": []},
)


def test_answers_are_scored_by_a_key_and_read(shop: Path) -> None:
    key, page, shown = shop / "key.jsonl", shop / "key.html", shop / "shown.jsonl"
    key.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in KEY), encoding="utf-8")
    scored = evaluate(
        "answers", "--key", str(key), "--tenant", "shop", "--html", str(page), "--jsonl", str(shown), "--json"
    )
    assert scored.exit_code == 0, scored.output
    (measured,) = json.loads(scored.stdout)["sets"]
    assert measured["figures"]["answer_precision"]["value"] == 1.0
    assert measured["figures"]["answer_recall"]["value"] == 1.0
    assert measured["figures"]["false_answer_rate"]["value"] == 0.0
    assert measured["figures"]["labelled@1"]["value"] == 1.0
    assert measured["claims"][0]["answer_precision"] == 1.0
    summary: Any = newest_run("shop").summary
    assert summary["sets"][0]["figures"]["answer_precision"]["value"] == 1.0
    assert [one["claimed"] for one in summary["sets"][0]["claims"]] == [one["claimed"] for one in measured["claims"]]
    assert summary["pipeline"] == json.loads(scored.stdout)["state"]["pipeline"]
    assert "прочистите фильтр насоса" in page.read_text(encoding="utf-8")
    assert "What confidence is worth" in page.read_text(encoding="utf-8")
    drain, absent = (json.loads(line) for line in shown.read_text(encoding="utf-8").splitlines())
    assert (drain["right"], drain["claimed"], absent["claimed"]) == (True, True, False)
    assert drain["turn"]["citations"][0]["doc_id"] == "drain.md"
    assert "прочистите" in drain["turn"]["sources"][0]["page_content"]
    assert "No threshold found: with 1 graded answers" in evaluate("calibrate", "latest").stdout
    assert json.loads(evaluate("calibrate", "--tenant", "shop", "--json").stdout)["graded"] == 0


def test_the_threshold_is_chosen_by_ratings(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rated = [GradedClaim(0.5 + n / 100, n >= 10) for n in range(40)]
    monkeypatch.setattr(report_commands, "graded_thumbs", lambda: rated)
    result = evaluate("calibrate", "--tenant", "shop", "--right", "0.9")
    assert "opora tenant policy shop --set answer_threshold=0.57" in result.stdout


def test_a_key_answers_from_its_own_passages_or_from_a_folder(shop: Path) -> None:
    key = shop / "own" / "key.jsonl"
    key.parent.mkdir()
    key.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in KEY), encoding="utf-8")
    for corpus in ([], ["--corpus", str(shop / "articles")]):
        scored = evaluate("answers", "--key", str(key), *corpus, "--json")
        assert scored.exit_code == 0, scored.output
        assert json.loads(scored.stdout)["sets"][0]["figures"]["labelled@1"]["value"] == 1.0


def test_unusable_keys_are_reported_in_one_line(shop: Path) -> None:
    assert "require --key" in evaluate("answers", "--tenant", "shop").stderr
    assert "does not exist" in evaluate("answers", "--key", str(shop / "none.jsonl")).stderr
    assert "does not exist" in evaluate("answers", "--data", str(shop)).stderr
