"""Evaluators added by YAML: which cases they get, stored and counted scores, reported failures."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import yaml
from haystack import Pipeline
from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator
from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.core.component import Component
from haystack.dataclasses import ChatMessage
from haystack_integrations.components.generators.ollama import OllamaChatGenerator
from rich.console import Console

from evaluation.cases import Case, Quote, RankedPassage, Record, Sentence
from evaluation.measurement import Plan, finished
from evaluation.metrics.built_in import better_direction
from evaluation.metrics.results import report, reported
from evaluation.metrics.yaml_evaluators import AddedEvaluators, read_evaluators
from evaluation.report.data import as_json
from evaluation.report.page import as_page
from evaluation.report.tables import print_set
from evaluation.simulator.running import simulator_thread
from evaluation.stored_runs import Run, Runs, SetRun
from tenants.core.errors import Invalid

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


def added(**evaluators: Component) -> AddedEvaluators:
    pipeline = Pipeline()
    for name, evaluator in evaluators.items():
        pipeline.add_component(name, evaluator)
    return AddedEvaluators(pipeline)


def judges(generator: MockChatGenerator | OllamaChatGenerator) -> AddedEvaluators:
    return added(
        faithfulness=FaithfulnessEvaluator(chat_generator=generator),
        context_relevance=ContextRelevanceEvaluator(chat_generator=generator),
    )


def replying(reply: str | Callable[[Sequence[ChatMessage]], str], model: str = "mock-model") -> AddedEvaluators:
    if isinstance(reply, str):
        return judges(MockChatGenerator(reply, model=model))
    return judges(MockChatGenerator(response_fn=reply, model=model))


def judged(evaluators: AddedEvaluators, *records: Record, concurrency: int = 1) -> tuple[Record, ...]:
    try:
        return evaluators.judged(records, concurrency, lambda done, total: None)
    finally:
        evaluators.close()


def run(records: Sequence[Record], evaluators: AddedEvaluators | None = None) -> Run:
    return finished("s", [SetRun("s", "ru", 1.0, records=tuple(records))], Plan(evaluators=evaluators))


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_supported_answer_is_distinguished_from_an_invented_one(address: str, concurrency: int) -> None:
    evaluators = judges(OllamaChatGenerator("simulated", url=address, response_format="json"))
    right, wrong, off = judged(evaluators, SUPPORTED, INVENTED, OFF_TOPIC, concurrency=concurrency)
    assert right.judged == {"faithfulness": 1.0, "context_relevance": 1.0}
    assert wrong.judged == {"faithfulness": 0.5, "context_relevance": 1.0}
    assert off.judged == {"context_relevance": 0.0}, "nothing was shown"
    figures = report(SetRun("s", "ru", 1.0, records=(right, wrong, off))).figures
    assert (figures["faithfulness"].value, figures["faithfulness"].n) == (0.75, 2)
    assert figures["faithfulness"].low < 0.75 < figures["faithfulness"].high
    assert figures["context_relevance"].value == pytest.approx(2 / 3)
    assert figures["evaluator_failed"].value == 0.0


def test_a_malformed_reply_is_a_failure_that_is_counted() -> None:
    for reply in (
        "Of course! Here is my judgement.",
        "[1]",
        "{}",
        '{"statements": ["a"], "statement_scores": ["high"], "relevant_statements": null}',
        '{"statements": ["a"], "statement_scores": [7], "relevant_statements": 5}',
        '{"statements": ["a"], "statement_scores": [NaN], "relevant_statements": true}',
    ):
        records = judged(replying(reply), SUPPORTED, OFF_TOPIC)
        result = report(SetRun("s", "ru", 1.0, records=records))
        assert result.unjudged == {"context_relevance: malformed": 2, "faithfulness: malformed": 1}
        assert result.figures["evaluator_failed"].value == 1.0
        assert not {"faithfulness", "context_relevance"} & result.figures.keys(), "a failure is no score"
        assert result.scoreless() == {"context_relevance": "malformed", "faithfulness": "malformed"}
        assert better_direction("evaluator_failed") == "lower"


def test_an_unavailable_model_is_reported_as_such(nowhere: str) -> None:
    generator = OllamaChatGenerator(url=f"http://{nowhere}")
    evaluators = added(faithfulness=FaithfulnessEvaluator(chat_generator=generator))
    (record,) = judged(evaluators, SUPPORTED)
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
    records = judged(replying(reply_to), asked, unanswerable)
    contexts = repr([f"Возврат. Сроки\n{RETURNS.text}", "Заказ в пути."])
    about = f'{{"questions": Здравствуйте!\n{CASE.question}, "contexts": {contexts}'
    answer = "Вернуть товар можно в течение 14 дней."
    assert [prompt.strip() for prompt in prompts] == [
        f'{about}, "predicted_answers": {answer}}}\nOutputs:',
        f"{about}}}\nOutputs:",
    ]
    assert records[1].judged == {}, "nothing can bear on a question without an answer"


def test_scores_are_stored_shown_and_compared(tmp_path: Path) -> None:
    failed, willing = replying("no"), replying(YES)
    before, after = run(judged(willing, SUPPORTED, INVENTED), willing), run(judged(failed, SUPPORTED), failed)
    runs = Runs(tmp_path)
    for one in (before, after):
        runs.save(one)
        assert runs.load(one.run_id) == one
    reports = reported(after)
    shown = StringIO()
    console = Console(file=shown, width=160)
    print_set(console, reports[0], "en")
    assert "Evaluations that failed" in shown.getvalue()
    assert "an evaluator failed: faithfulness: malformed 1, context_relevance: malformed 1" in shown.getvalue()
    report_json = json.loads(json.dumps(as_json(after, reports), allow_nan=False))
    assert report_json["sets"][0]["unjudged"] == {"faithfulness: malformed": 1, "context_relevance: malformed": 1}
    assert report_json["state"]["evaluators"]["faithfulness"] == "FaithfulnessEvaluator mock-model"
    page = as_page(after, reports, "en")
    assert "FaithfulnessEvaluator mock-model" in page
    assert "context_relevance: malformed 1" in page
    assert "Statements supported by the passages" in as_page(before, reported(before), "en")


LLM_EVALUATOR = {
    "type": "haystack.components.evaluators.llm_evaluator.LLMEvaluator",
    "init_parameters": {
        "instructions": "Is the answer polite? Score 1 to 5.",
        "inputs": [["predicted_answers", "list[str]"]],
        "outputs": ["politeness"],
        "examples": [{"inputs": {"predicted_answers": "Go away."}, "outputs": {"politeness": 1}}],
        "chat_generator": MockChatGenerator('{"politeness": 4}', model="small").to_dict(),
    },
}
RECALL = {"type": "haystack.components.evaluators.document_recall.DocumentRecallEvaluator"}


def written(tmp_path: Path, components: Mapping[str, object]) -> Path:
    path = tmp_path / "evaluators.yaml"
    path.write_text(yaml.safe_dump({"components": components, "connections": []}), encoding="utf-8")
    return path


def test_evaluators_of_haystack_are_added_by_yaml_alone(tmp_path: Path) -> None:
    evaluators = read_evaluators(written(tmp_path, {"tone": LLM_EVALUATOR, "recall": RECALL}))
    found = replace(SUPPORTED, case=replace(CASE, gold_docs=("returns", "refunds")), ranked=("returns", "contacts"))
    labelled, plain = judged(evaluators, found, SUPPORTED)
    assert labelled.judged == {"tone": 4.0, "recall": 1.0}
    assert plain.judged == {"tone": 4.0}, "no labelled article to find"
    assert evaluators.names == {"tone": "LLMEvaluator small", "recall": "DocumentRecallEvaluator"}


@pytest.mark.parametrize(
    ("components", "code", "fault"),
    [
        ({}, "evaluators_empty", ""),
        ({"x": {"type": "subprocess.Popen"}}, "evaluators_unreadable", "subprocess"),
        ({"x": {"type": "haystack.components.Nothing"}}, "evaluators_unreadable", "Nothing"),
        ({"x": {**RECALL, "init_parameters": {"modl": 1}}}, "evaluators_unreadable", "modl"),
        ({"mrr": RECALL}, "evaluators_unreadable", "mrr is a figure already"),
        (
            {"x": {"type": "haystack.components.builders.answer_builder.AnswerBuilder"}},
            "evaluators_unreadable",
            "x takes query, replies; available: questions",
        ),
    ],
)
def test_a_file_without_evaluators_says_what_is_wrong(
    tmp_path: Path, components: Mapping[str, object], code: str, fault: str
) -> None:
    with pytest.raises(Invalid, match=code) as refused:
        read_evaluators(written(tmp_path, components))
    assert fault in str(refused.value.params.get("fault", ""))
