"""`opora evaluate` as somebody uses it on their own tenant."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

import cli
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulated
from pipelines.ask.engine import YAML
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
        (articles / "drain.md").write_text("# Слив\n\nЕсли вода не сливается, прочистите фильтр насоса.", "utf-8")
        (articles / "return.md").write_text("# Возврат\n\nВернуть товар можно за 7 дней.", "utf-8")
        lines = "\n".join(json.dumps(case, ensure_ascii=False) for case in CASES)
        (folder / "cases.jsonl").write_text(lines, encoding="utf-8")
        assert opora("tenant", "add", "shop").exit_code == 0
        assert opora("ingest", str(articles), "--tenant", "shop").exit_code == 0
        yield folder


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def evaluate(*arguments: str) -> Result:
    return opora("evaluate", *arguments)


def test_a_tenant_is_measured_kept_shown_again_and_compared(shop: Path) -> None:
    page, junit = shop / "report.html", shop / "junit.xml"
    cases = str(shop / "cases.jsonl")
    first = evaluate(cases, "--tenant", "shop", "--html", str(page), "--junit", str(junit), "--locale", "ru", "--json")
    assert first.exit_code == 0, first.output
    (measured,) = json.loads(first.stdout)["sets"]
    assert (measured["name"], measured["n"], measured["index"]["tenant"]) == ("cases", 3, "shop")
    assert measured["figures"]["hit@1"]["value"] == 1.0
    assert measured["figures"]["facts_in_answer"]["value"] == 1.0
    assert measured["figures"]["false_answer"]["value"] == 0.0
    assert '<html lang="ru">' in page.read_text(encoding="utf-8")
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "0"
    assert json.loads(evaluate("runs", "--json").stdout) == [json.loads(first.stdout)["run"]]
    assert json.loads(evaluate("report", "--json").stdout) == json.loads(first.stdout)
    assert evaluate(cases, "--tenant", "shop", "--concurrency", "2").exit_code == 0
    same = evaluate("compare", "latest~1", "--json")
    assert same.exit_code == 0
    assert json.loads(same.stdout)["identical"] is True


def test_a_broken_promise_ends_a_comparison_with_1(shop: Path) -> None:
    strict = shop / "strict.yaml"
    source = YAML.read_text(encoding="utf-8")
    assert "threshold: 0.57" in source
    strict.write_text(source.replace("threshold: 0.57", "threshold: 1.0"), encoding="utf-8")
    cases = str(shop / "cases.jsonl")
    assert evaluate(cases, "--tenant", "shop").exit_code == 0
    assert evaluate(cases, "--tenant", "shop", "--pipeline", str(strict)).exit_code == 0
    lost = evaluate("compare", "latest~1", "latest")
    assert lost.exit_code == 1
    assert "evaluate_retrieval.threshold: 0.57 → 1.0" in lost.stdout
    assert "return" in lost.stdout
    assert evaluate("compare", "latest", "latest~1").exit_code == 0, "a gain never fails"


JUDGE = """
chat_generator:
  type: haystack_integrations.components.generators.ollama.chat.chat_generator.OllamaChatGenerator
  init_parameters: {{model: simulated, url: "{url}", response_format: json}}
embedder:
  type: haystack_integrations.components.embedders.ollama.text_embedder.OllamaTextEmbedder
  init_parameters: {{model: simulated-embed, url: "{url}"}}
"""


def test_a_model_judges_on_demand(shop: Path) -> None:
    cases, judge = shop / "judged.jsonl", shop / "judge.yaml"
    rows = [CASES[0], {**CASES[1], "gold_answer": "Товар можно вернуть за 7 дней."}, CASES[2]]
    cases.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    measure = (str(cases), "--tenant", "shop", "--judge", str(judge))
    with simulated() as (simulator, url):
        judge.write_text(JUDGE.format(url=url), encoding="utf-8")
        first = evaluate(*measure, "--json")
        assert first.exit_code == 0, first.output
        simulator.turn_to(Knobs(faults=(Fault(kind="garbage", task="faithfulness", times=1),)))
        second = evaluate(*measure, "--locale", "ru")
    told = json.loads(first.stdout)
    figures = told["sets"][0]["figures"]
    assert (figures["faithfulness"]["value"], figures["faithfulness"]["n"]) == (1.0, 2)
    assert (figures["context_relevance"]["value"], figures["context_relevance"]["n"]) == (1.0, 2)
    assert (figures["semantic_similarity"]["value"], figures["semantic_similarity"]["n"]) == (pytest.approx(1.0), 1)
    assert told["sets"][0]["unjudged"] == {}
    assert told["state"]["judge"]["chat_generator"] == "OllamaChatGenerator simulated"
    assert "faithfulness: malformed 1" in second.stdout
    compared = evaluate("compare", "latest~1", "--json")
    assert {one["figure"] for one in json.loads(compared.stdout)["differences"] if one["change"]} == {"judge_failed"}


def test_cases_are_picked_by_tag_and_sealed_ones_only_on_demand(shop: Path) -> None:
    cases = str(shop / "cases.jsonl")
    tagged = evaluate(cases, "--tenant", "shop", "--tag", "money", "--json")
    assert json.loads(tagged.stdout)["sets"][0]["n"] == 1
    everything = evaluate(cases, "--tenant", "shop", "--sealed", "--json")
    assert json.loads(everything.stdout)["sets"][0]["n"] == 4
    assert evaluate(cases, "--tenant", "shop", "--tag", "nobody").exit_code == 2


def test_what_cannot_be_done_is_said_in_one_line(shop: Path) -> None:
    broken = shop / "broken.yaml"
    broken.write_text("components: {a: {type: no.such.Thing}}", encoding="utf-8")
    cases = str(shop / "cases.jsonl")
    for wrong in (
        ("nothing",),
        (cases, "--tenant", "nobody"),
        ("fixture", "--pipeline", str(broken)),
        ("fixture", "--judge", str(broken)),
        ("report", "nothing"),
        ("compare", "nothing"),
    ):
        refused = evaluate(*wrong)
        assert (refused.exit_code, refused.stdout) == (2, ""), wrong
        assert refused.stderr.count("\n") == 1, refused.stderr


def test_advice_and_figures_of_a_small_run_are_empty_but_said(shop: Path) -> None:
    assert evaluate(str(shop / "cases.jsonl"), "--tenant", "shop").exit_code == 0
    assert "too few" in evaluate("advise").stdout
    assert json.loads(evaluate("advise", "--json").stdout) == {"cases": []}
    assert evaluate("figures", "latest").stdout.startswith("| set | figure |")
