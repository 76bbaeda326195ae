"""Words of an erased person outside of their chats."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import event

from pipelines.ask.answering import answer_of
from pipelines.ask.articles import from_chat
from pipelines.ask.steps import Steps
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.trace import Trace
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.desk import articles
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tenants.work import idempotency, locks
from tests.attack.attacking import VICTIM
from tests.receiving import receiving
from tests.service.serving import in_force
from tests.turns import turn


def written_from_a_chat(words: str) -> str:
    """Return an article that an operator has written from a new chat of the customer."""
    with acting_as(Tenant(VICTIM, "customer")):
        chat_id = store.start().chat_id
        store.post(chat_id, words)
    return from_chat.write(chat_id).article_id


def test_drafts_from_chats_of_who_is_erased_go(tmp_path: Path) -> None:
    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant(VICTIM, "anna")):
        Registry().add(VICTIM)
        written_from_a_chat("Я Иван Канареечкин, улица Лесная, 3, где мой заказ?")
        published = written_from_a_chat("Где заказ?")
        articles.mark_published(published, 1)
        persons.erase(Person(subject="customer"))
        left = articles.page()
        assert [one.article_id for one in left] == [published]
        assert articles.get(published).chat_id is None


def trace_of(person: str, number: int) -> Trace:
    answer = answer_of(replace(turn("Где заказ?"), outcome="answered"), trace_id=f"{number:032x}")
    asked_at = int(datetime.now(UTC).timestamp() * 1e9)
    return Trace(VICTIM, person, "s", asked_at, Steps(), answer, "digest", content=True)


def test_traces_that_wait_for_phoenix_are_not_sent_after_an_erasure(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with in_force(settings), acting_as(Tenant(VICTIM, "anna")), receiving() as collector:
        Registry().add(VICTIM)
        sender = Sender(Settings(otlp_endpoint=collector.url))
        sender.take(trace_of(persons.digest(VICTIM, "customer"), 1))
        sender.take(trace_of(persons.digest(VICTIM, "another"), 2))
        persons.erase(Person(subject="customer"))
        sender.take(trace_of(persons.digest(VICTIM, "customer"), 3))
        sender.start()
        request = ExportTraceServiceRequest.FromString(collector.next().body)
        sender.close()
    spans = [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
    assert {int(span.trace_id.hex(), 16) for span in spans} == {2, 3}


READS_ANSWERS = r"SELECT (?s:.*)idempotency\.answer\b(?! IS)"


def answered(key: str, session_id: str) -> None:
    idempotency.begin(key, "hash")
    idempotency.finish(key, json.dumps({"session_id": session_id}))


def test_answers_are_read_outside_of_writes(tmp_path: Path) -> None:
    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant(VICTIM, "anna")):
        Registry().add(VICTIM)
        for number in range(25):
            answered(f"k{number}", "s1" if number % 2 else "s2")
        statements: list[str] = []
        event.listen(database.engine(), "before_cursor_execute", lambda *given: statements.append(given[2]))
        assert idempotency.erase(None, "none") == 0
        reads = [at for at, statement in enumerate(statements) if re.search(READS_ANSWERS, statement)]
        assert reads
        begun = [next(one for one in statements[at::-1] if one.startswith("BEGIN")) for at in reads]
        assert set(begun) == {"BEGIN DEFERRED"}, "SQLite has one writer"
        locks.close_all()


def test_answers_are_erased_in_small_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "AT_ONCE", 4)
    deleted: list[int] = []

    def count(*given: Any) -> None:  # noqa: ANN401 - the arguments of SQLAlchemy's event
        if given[2].startswith("DELETE FROM idempotency"):
            deleted.append(len(deleted))

    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant(VICTIM, "anna")):
        Registry().add(VICTIM)
        for number in range(20):
            answered(f"k{number}", "s1" if number % 2 else "s2")
        idempotency.begin("begun", "hash")
        event.listen(database.engine(), "after_cursor_execute", count)
        late = iter(("late",))

        def store_late() -> None:
            for key in late:
                answered(key, "s1")

        monkeypatch.setattr(fairness, "yield_to_questions", store_late)
        assert idempotency.erase(None, "s1") == 11, "one was stored meanwhile"
        assert len(deleted) == 3
        assert idempotency.of_person("anna", "s1") == ()
        assert len(idempotency.of_person(None, "s2")) == 10
        assert idempotency.erase("anna", None) == 10
        assert len(deleted) == 6
        assert idempotency.begin("begun", "hash") is None, "the key of a request in progress is free"
        locks.close_all()
