"""Judgement of a run by models: correct requests, stored and counted scores, reported failures."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from haystack.components.embedders import MockTextEmbedder
from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.dataclasses import ChatMessage
from haystack_integrations.components.embedders.ollama import OllamaTextEmbedder
from haystack_integrations.components.generators.ollama import OllamaChatGenerator
from rich.console import Console

from evaluation.cases import Case, Quote, RankedPassage, Record, Sentence
from evaluation.compare import compare
from evaluation.metrics.judging import Judge, read_judge
from evaluation.metrics.marks import better_direction
from evaluation.metrics.results import report, reported
from evaluation.report.data import as_json
from evaluation.report.page import as_page
from evaluation.report.tables import print_comparison, print_set
from evaluation.run import Plan, finished
from evaluation.runs import Run, Runs, SetRun
from evaluation.simulator.running import simulator_thread
from settings import ROOT
from tenants.core.errors import Invalid
from tests.pages import PAGES, blocks

RETURNS = RankedPassage(
    "returns", "Возврат", "Сроки", "Вернуть товар можно в течение 14 дней. Деньги вернутся на карту.", 0.9, 0.8
)
CASE = Case("1", "За сколько дней можно вернуть товар?", gold_answer="Товар можно вернуть в течение 14 дней.")
SUPPORTED = Record(CASE, "answered", text="Вернуть товар можно в течение 14 дней. [1]", passages=(RETURNS,))
INVENTED = replace(
    SUPPORTED,
    case=replace(CASE, case_id="2"),
    text="Вернуть товар можно в течение 14 дней. [1] Доставка стоит 500 рублей.",
)
OFF_TOPIC = Record(Case("3", "Какая гарантия на холодильник?"), "refused", passages=(RETURNS,))
YES = '{"statements": ["a"], "statement_scores": [1], "relevant_statements": ["a"]}'


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with simulator_thread() as (_, url):
        yield url


def judged(judge: Judge, *records: Record, concurrency: int = 1) -> tuple[Record, ...]:
    try:
        return judge.judged(records, concurrency, lambda done, total: None)
    finally:
        judge.close()


def judge_saying(reply: str | Callable[[Sequence[ChatMessage]], str]) -> Judge:
    return Judge(MockChatGenerator(reply) if isinstance(reply, str) else MockChatGenerator(response_fn=reply))


def run(records: Sequence[Record], judge: Judge | None = None) -> Run:
    return finished("s", [SetRun("s", "ru", 1.0, records=tuple(records))], Plan(judge=judge))


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_supported_answer_is_distinguished_from_an_invented_one(address: str, concurrency: int) -> None:
    judge = Judge(OllamaChatGenerator("simulated", url=address, response_format="json"))
    right, wrong, off = judged(judge, SUPPORTED, INVENTED, OFF_TOPIC, concurrency=concurrency)
    assert right.judged == {"faithfulness": 1.0, "context_relevance": 1.0}
    assert wrong.judged == {"faithfulness": 0.5, "context_relevance": 1.0}
    assert off.judged == {"context_relevance": 0.0}, "nothing was shown"
    figures = report(SetRun("s", "ru", 1.0, records=(right, wrong, off))).figures
    assert (figures["faithfulness"].value, figures["faithfulness"].n) == (0.75, 2)
    assert figures["faithfulness"].low < 0.75 < figures["faithfulness"].high
    assert figures["context_relevance"].value == pytest.approx(2 / 3)
    assert figures["judge_failed"].value == 0.0


def test_a_generator_without_json_output_judges_nothing(address: str) -> None:
    (record,) = judged(Judge(OllamaChatGenerator("simulated", url=address)), SUPPORTED)
    assert record.judged == {"faithfulness": "malformed", "context_relevance": "malformed"}


@pytest.mark.parametrize(
    "reply",
    [
        "Of course! Here is my judgement.",
        "[1]",
        "{}",
        '{"statements": ["a"], "statement_scores": ["high"], "relevant_statements": null}',
        '{"statements": ["a"], "statement_scores": [7], "relevant_statements": 5}',
        '{"statements": ["a"], "statement_scores": [NaN], "relevant_statements": true}',
    ],
)
def test_a_malformed_reply_is_a_failure_that_is_counted(reply: str) -> None:
    records = judged(judge_saying(reply), SUPPORTED, OFF_TOPIC)
    result = report(SetRun("s", "ru", 1.0, records=records))
    assert result.unjudged == {"context_relevance: malformed": 2, "faithfulness: malformed": 1}
    assert result.figures["judge_failed"].value == 1.0
    assert not {"faithfulness", "context_relevance"} & result.figures.keys(), "a failure is no score"
    assert better_direction("judge_failed") == "lower"


def test_one_failure_leaves_other_scores_intact() -> None:
    def slow(messages: Sequence[ChatMessage]) -> str:
        if "500 рублей" in (messages[0].text or ""):
            raise TimeoutError
        return YES

    right, wrong = judged(judge_saying(slow), SUPPORTED, INVENTED)
    assert right.judged["faithfulness"] == 1.0
    assert wrong.judged == {"faithfulness": "timeout", "context_relevance": 1.0}
    assert report(SetRun("s", "ru", 1.0, records=(right, wrong))).figures["faithfulness"].n == 1


def test_an_unavailable_model_is_reported_as_such(nowhere: str) -> None:
    url = f"http://{nowhere}"
    (record,) = judged(Judge(OllamaChatGenerator(url=url), OllamaTextEmbedder(url=url)), SUPPORTED)
    assert set(record.judged.values()) == {"refused"}


def test_the_models_are_asked_about_what_was_shown_and_found() -> None:
    prompts: list[str] = []

    def reply_to(messages: Sequence[ChatMessage]) -> str:
        prompts.append((messages[0].text or "").rpartition("Inputs:")[2])
        return YES

    quotes = (
        Quote("returns", "Деньги вернутся на карту.", True),
        Quote("tool", "Заказ в пути.", True),
        Quote("tool", "Выдумано.", False),
    )
    asked = replace(
        SUPPORTED, case=replace(CASE, history=("Здравствуйте!",)), sentences=(Sentence("Заказ в пути.", quotes),)
    )
    unanswerable = replace(OFF_TOPIC, case=replace(OFF_TOPIC.case, answerable=False))
    records = judged(judge_saying(reply_to), asked, unanswerable)
    contexts = repr([f"Возврат. Сроки\n{RETURNS.text}", "Заказ в пути."])
    about = f'{{"questions": Здравствуйте!\n{CASE.question}, "contexts": {contexts}'
    answer = "Вернуть товар можно в течение 14 дней."
    assert [prompt.strip() for prompt in prompts] == [
        f'{about}, "predicted_answers": {answer}}}\nOutputs:',
        f"{about}}}\nOutputs:",
    ]
    assert records[1].judged == {}, "nothing can bear on a question without an answer"


class Directions:
    """A custom embedder: texts that name a direction, and one without."""

    dimensions = 2
    model = "compass"

    def question(self, text: str) -> Sequence[float]:
        return {"север": (0.0, 2.0), "северо-восток": (1.0, 1.0), "восток": (3.0, 0.0)}.get(text, (0.0, 0.0))


@pytest.mark.parametrize(
    ("answer", "gold", "spans", "score"),
    [
        ("север [1]", "север", (), 1.0),
        ("север", "восток", ("север",), 0.0),
        ("север", "", ("восток", "северо-восток"), 0.7071),
        ("нигде", "север", (), "malformed"),
    ],
)
def test_an_embedder_alone_gives_semantic_similarity(
    answer: str, gold: str, spans: tuple[str, ...], score: float | str
) -> None:
    judge = Judge(embedder=Directions())  # type: ignore[arg-type]  # no more of it is asked for
    record = Record(Case("1", "?", gold_answer=gold, gold_spans=spans), "answered", text=answer, passages=(RETURNS,))
    (one,) = judged(judge, record)
    assert one.judged == {"semantic_similarity": score}
    assert judge.names == {"embedder": "Directions compass"}
    (refused,) = judged(judge, replace(record, outcome="refused"))
    assert refused.judged == {}


def test_an_embedder_of_haystack_serves_as_well(address: str) -> None:
    judge = Judge(embedder=OllamaTextEmbedder("simulated-embed", url=address))
    near, far = judged(judge, SUPPORTED, replace(SUPPORTED, text="Пришлите фотографию чека."))
    one, other = (record.judged["semantic_similarity"] for record in (near, far))
    assert isinstance(one, float)
    assert isinstance(other, float)
    assert one > 0.8 > other


def test_judgements_are_stored_shown_and_compared(tmp_path: Path) -> None:
    failed, willing = judge_saying("no"), judge_saying(YES)
    before, after = run(judged(willing, SUPPORTED, INVENTED), willing), run(judged(failed, SUPPORTED), failed)
    runs = Runs(tmp_path)
    for one in (before, after):
        runs.save(one)
        assert runs.load(one.run_id) == one
    reports = reported(after)
    shown = StringIO()
    console = Console(file=shown, width=160)
    print_set(console, reports[0], "en")
    assert "judge_failed" in shown.getvalue()
    assert "a model failed: faithfulness: malformed 1, context_relevance: malformed 1" in shown.getvalue()
    report_json = json.loads(json.dumps(as_json(after, reports), allow_nan=False))
    assert report_json["sets"][0]["unjudged"] == {"faithfulness: malformed": 1, "context_relevance: malformed": 1}
    assert report_json["state"]["judge"] == {"chat_generator": "MockChatGenerator mock-model"}
    page = as_page(after, reports, "en")
    assert "Judged by MockChatGenerator mock-model" in page
    assert "context_relevance: malformed 1" in page
    assert "Statements supported by the passages" in as_page(before, reported(before), "en")


def test_a_comparison_shows_figures_and_judges_that_differ() -> None:
    other = Judge(
        MockChatGenerator('{"statements": ["a"], "statement_scores": [0], "relevant_statements": []}', model="b")
    )
    willing = judge_saying(YES)
    before, after = run(judged(willing, SUPPORTED), willing), run(judged(other, SUPPORTED), other)
    comparison = compare(before, after)
    names = ("--judge", "chat_generator", "MockChatGenerator mock-model", "MockChatGenerator b")
    assert comparison.parameters == (names,)
    assert compare(run([SUPPORTED]), run([SUPPORTED])).parameters == ()
    changes = {one.figure: one.change for one in comparison.differences if one.change}
    assert changes == {"faithfulness": -1.0, "context_relevance": -1.0}
    assert not comparison.regressed, "a model's word is shown, it decides nothing"
    shown = StringIO()
    print_comparison(Console(file=shown, width=160), comparison, "en")
    assert "faithfulness" in shown.getvalue()


MOCK = "haystack.components.generators.chat.mock.MockChatGenerator"


def test_a_file_names_the_judge(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(
        f"chat_generator: {{type: {MOCK}, init_parameters: {{model: small}}}}\n"
        "embedder: {type: components.embed.fast.FastEmbedder, init_parameters: {model: e5, dimensions: 3}}\n"
    )
    assert read_judge(path).names == {"chat_generator": "MockChatGenerator small", "embedder": "FastEmbedder e5"}
    path.write_text(f"embedder: {{type: {MockTextEmbedder.__module__}.MockTextEmbedder}}")
    assert list(read_judge(path).names) == ["embedder"]


@pytest.mark.parametrize(
    ("content", "code", "fault"),
    [
        ("", "judge_unreadable", "dictionary"),
        ("embedder:", "judge_empty", ""),
        ("{", "judge_unreadable", "column 1"),
        ("judge: {type: x}", "judge_unreadable", "judge: "),
        ("chat_generator: {type: subprocess.Popen}", "judge_unreadable", "subprocess"),
        ("chat_generator: {type: haystack.components.Nothing}", "judge_unreadable", "Nothing"),
        (f"chat_generator: {{type: {MOCK}, init_parameters: {{modl: x}}}}", "judge_unreadable", "modl"),
        (f"embedder: {{type: {MOCK}}}", "judge_unreadable", "no embedder"),
    ],
)
def test_a_file_without_a_judge_is_reported_as_such(tmp_path: Path, content: str, code: str, fault: str) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(content)
    with pytest.raises(Invalid, match=code) as refused:
        read_judge(path)
    assert fault in str(refused.value.params.get("fault", ""))


def test_the_example_file_defines_a_judge(tmp_path: Path) -> None:
    (example,) = blocks(PAGES["docs/develop/evaluation.md"], "yaml")
    path = tmp_path / "judge.yaml"
    path.write_text(example)
    judge = read_judge(path)
    judge.close()
    assert set(judge.names) == {"chat_generator", "embedder"}


def test_without_a_judge_no_library_of_models_is_imported() -> None:
    code = "import sys, evaluation.run, evaluation.commands; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "evaluation.run" in done.stdout.split()
    assert not {"evaluation.judging", "openai", "ollama"} & set(done.stdout.split())
