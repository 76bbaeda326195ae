"""Words of an erased person outside of their chats."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipelines.ask.answering import answer_of
from pipelines.ask.articles import from_chat
from pipelines.ask.steps import Steps
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.trace import Trace
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.core.context import Tenant, acting_as
from tenants.desk import articles
from tenants.privacy import persons
from tenants.privacy.persons import Person
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
