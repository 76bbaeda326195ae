"""Replay lists exactly the changed turns, compared with brute force."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from components.language.personal import without_masks
from evaluation.datasets.fixture import DEMO
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.replay import Replay, ReplayedTurn, Trial, report, trial
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest, read_path
from settings import get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.search import Record, TurnQuery
from tenants.audit.store import TurnOwner
from tenants.core import context
from tenants.core.context import SCOPES, Tenant
from tenants.core.errors import Invalid, NotFound
from tests.chats import all_tickets

ASKED = (
    "Стиральная машина показывает ошибку E20, что делать?",
    "Что означает ошибка E401 на стиральной машине?",
    "Как вернуть товар?",
    "Сколько дней на возврат?",
    "Сколько стоит доставка?",
    "Как сбросить пароль?",
    "Можно ли оплатить картой?",
    "Чем кормить попугая зимой?",
    "Сколько действует гарантия на стиральную машину и когда её чистить?",
    "Отмените мой заказ и верните деньги немедленно!",
    "Привет!",
    "фильтр",
    "Напишите на ivan@mail.ru, как вернуть деньги",
)


FEW = ("returns.md", "delivery.md", "payment.md", "warranty.md")


@pytest.fixture(scope="module")
def records(shop: Tenant) -> tuple[Record, ...]:
    """A tenant's recorded turns, newest first."""
    ask = Ask()
    ask.engine.warm_up()
    for question in ASKED:
        ask.answer(AskRequest(question=question))
    for question in ("Что значит E20?", "А если не поможет?"):
        ask.answer(AskRequest(question=question, session_id="talk"))
    ask.close()
    return search.find(TurnQuery(), limit=100)


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with lowered thresholds of evidence and of quotations."""
    content = yaml.safe_load(YAML.read_text(encoding="utf-8"))
    content["components"]["evaluate_retrieval"]["init_parameters"]["threshold"] = 0.1
    content["components"]["self_evaluate"]["init_parameters"]["quote_threshold"] = 0.1
    path = tmp_path_factory.mktemp("tried") / "lenient.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def run(tried: Trial, records: tuple[Record, ...]) -> list[ReplayedTurn]:
    replay = Replay(tried)
    turns = list(replay.run(records, lambda done: None))
    replay.close()
    return turns


def outcomes(engine: AskEngine, records: tuple[Record, ...]) -> dict[str, str]:
    """Ask each question afresh and return the outcomes; masks are removed first."""
    ask = Ask(engine)
    requests = {record.turn_id: AskRequest(question=without_masks(record.question or "")) for record in records}
    return {turn_id: str(ask.turn(request).outcome) for turn_id, request in requests.items()}


def test_a_changed_threshold_changes_exactly_these_outcomes(records: tuple[Record, ...], lenient: Path) -> None:
    alone = tuple(record for record in records if not (record.content or {})["history"])
    before, after = outcomes(AskEngine(), alone), outcomes(AskEngine(lenient), alone)
    expected = {turn_id for turn_id in before if before[turn_id] != after[turn_id]}
    listed = {turn.record.turn_id for turn in run(Trial(pipeline=lenient), alone) if "outcome" in turn.changes}
    assert listed == expected
    assert 0 < len(expected) < len(alone)


def test_the_same_pipeline_changes_nothing(records: tuple[Record, ...]) -> None:
    turns = run(Trial(pipeline=YAML), records)
    assert len(turns) == len(ASKED) + 2
    assert [turn.question for turn in turns if turn.changes] == []
    assert [turn.question for turn in turns if turn.drifted and not turn.masked] == []


def test_a_policy_is_tried_and_not_stored(records: tuple[Record, ...]) -> None:
    shown = {record.turn_id: record.outcome for record in records}
    handed = {
        turn.record.turn_id: turn.after.outcome
        for turn in run(trial(None, {"low_confidence_to_human": True}, None), records)
    }
    weak = {turn_id for turn_id, outcome in shown.items() if outcome == "low_confidence"}
    assert weak
    assert handed == shown | dict.fromkeys(weak, "human_followup")
    assert policy.current().low_confidence_to_human is False


def test_another_knowledge_base_is_tried_with_this_tenants_policy(records: tuple[Record, ...]) -> None:
    Registry().add("bare")
    turns = run(trial(None, {}, "bare"), records)
    assert {turn.before.outcome for turn in turns if "outcome" in turn.changes} >= {"answered"}
    assert not {turn.after.outcome for turn in turns} & {"answered", "partially_answered", "low_confidence"}
    with pytest.raises(NotFound):
        trial(None, {}, "nobody")


def test_replaying_leaves_no_trace(records: tuple[Record, ...], lenient: Path) -> None:
    stored = all_tickets()
    run(Trial(pipeline=lenient), records)
    assert len(search.find(TurnQuery(), limit=100)) == len(records)
    assert all_tickets() == stored
    assert not list((get_settings().data_dir / "spool").glob("*.jsonl"))


def test_a_conversation_is_replayed_as_it_was(records: tuple[Record, ...]) -> None:
    follow_up = next(record for record in records if record.question == "А если не поможет?")
    (turn,) = run(Trial(), (follow_up,))
    assert turn.changes == ()
    assert follow_up.content is not None
    forgotten = replace(follow_up, content={**follow_up.content, "history": []})
    (alone,) = run(Trial(), (forgotten,))
    assert alone.changes


def test_a_faulty_pipeline_or_policy_is_said(tmp_path: Path, shop: Tenant) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(YAML.read_text(encoding="utf-8").replace("worth_retrying:", "worth_trying:"), encoding="utf-8")
    with pytest.raises(Invalid, match="pipeline_faulty"):
        Replay(Trial(pipeline=path))
    with pytest.raises(Invalid, match="policy_invalid"):
        trial(None, {"top_k": 1_000}, None)


@pytest.fixture(scope="module")
def edited(shared_installation: None) -> Iterator[tuple[Record, ...]]:
    """A separate tenant whose article on returns changed after its turns were recorded."""
    Registry().add("edited")
    with context.acting_as(Tenant("edited", "anna", SCOPES)):
        few = [document for document in read_path(DEMO / "ru") if document.doc_id in FEW]
        Ingest().run(few)
        ask = Ask()
        for question in (*ASKED[2:7], "Привет!"):
            ask.answer(AskRequest(question=question))
        ask.close()
        text = "# Возврат товара\n\nТовар можно вернуть в течение 45 дней. Деньги возвращаем за 3 дня на карту.\n"
        Ingest().run([replace(item, text=text) for item in few if item.doc_id == "returns.md"])
        yield search.find(TurnQuery(), limit=100)


def test_a_changed_document_lists_the_answers_that_it_changes(edited: tuple[Record, ...]) -> None:
    ask = Ask()
    expected = set()
    for record in edited:
        now = answer_of(ask.turn(AskRequest(question=record.question or "")))
        was = TurnAnswer.model_validate((record.content or {})["answer"])
        same = [citation.chunk_id for citation in now.citations] == [citation.chunk_id for citation in was.citations]
        if now.outcome != was.outcome or not same:
            expected.add(record.turn_id)
    results = search.find(TurnQuery(document="returns.md"), limit=100)
    listed = {turn.record.turn_id for turn in run(Trial(), results) if turn.changes}
    assert listed == expected
    assert 0 < len(listed) < len(results) < len(edited)


def test_an_erased_turn_is_counted_and_not_asked(edited: tuple[Record, ...]) -> None:
    store.erase(TurnOwner(person=edited[0].person), get_settings())
    records = search.find(TurnQuery(), limit=5)
    turns = run(Trial(), records)
    assert turns == []
    summary = report(turns, total=len(records))
    assert (summary["asked"], summary["erased"], summary["changed"]) == (5, 5, 0)
    assert json.loads(json.dumps(summary))["schema"] == "replay.v1"
