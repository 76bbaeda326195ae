"""Stored data of a tenant besides its chunks, on every database."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from settings import Settings
from tenants.accounts import policy, registry
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.chats import conversation_memory, tickets
from tenants.chats.conversation_memory import PastTurn
from tenants.chats.tables import ConversationRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, Invalid, NoTenant, NotFound
from tenants.knowledge import documents, lexicon
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.lexicon import ChunkTerms, Lexicon
from tenants.knowledge.tables import DocumentRow, LexiconPartRow
from tenants.privacy import persons, retention
from tenants.privacy.persons import Person
from tenants.storage import database
from tenants.work import idempotency
from tenants.work.idempotency import ABANDONED, RETENTION
from tenants.work.tables import IdempotencyRow
from tests.chats import all_tickets, handed_over

ANNA = Tenant("acme", "anna")
OTHER = Tenant("globex", "anna")
E20 = DocumentRecord("e20", "Ошибка E20", "e20.md", "h1", ("c1", "c2"), "2024-01-31", url="https://example.com/e20")


def test_a_conversation_keeps_its_last_ten_turns_for_a_day(acme: Tenant) -> None:
    for number in range(12):
        conversation_memory.remember("s", PastTurn(f"Вопрос {number}?", "answered", ("а", "б")))
    recalled = conversation_memory.recall("s")
    assert [item.question for item in recalled] == [f"Вопрос {number}?" for number in range(2, 12)]
    assert recalled[0].options == ("а", "б")
    assert conversation_memory.recall("t") == ()
    for other in (OTHER, Tenant("acme", "boris")):
        with acting_as(other):
            assert conversation_memory.recall("s") == ()
    with database.writing() as session:
        session.execute(update(ConversationRow).values(updated_at=datetime.now(UTC) - conversation_memory.RETENTION))
    assert conversation_memory.recall("s") == ()
    conversation_memory.remember("t", PastTurn("Новый?", "refused"))
    retention.prune()
    assert len(persons.export(Person("anna"))["conversations"]) == 1
    with database.writing() as session:
        session.execute(update(ConversationRow).values(updated_at=datetime.now(UTC) - conversation_memory.RETENTION))
    conversation_memory.remember("t", PastTurn("Ещё один?", "refused"))
    assert [item.question for item in conversation_memory.recall("t")] == ["Ещё один?"], (
        "what is old does not come back"
    )


def test_the_newest_migration_is_the_one_expected() -> None:
    config = Config()
    config.set_main_option("script_location", "tenants:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [database.HEAD]


def test_sqlite_is_set_up_for_many_readers(installation: Settings) -> None:
    with database.engine(installation).connect() as connection:
        pragmas = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "synchronous")
        ]
    assert pragmas == ["wal", 1, 2]


def test_a_row_needs_its_tenant(records: Settings) -> None:
    with acting_as(Tenant("nobody", "anna")), pytest.raises(IntegrityError):
        documents.put(E20)


def test_a_block_that_raises_changes_nothing(acme: Tenant, records: Settings) -> None:
    documents.put(E20)

    def change_and_fail() -> None:
        with database.writing(records) as session:
            session.delete(session.get_one(DocumentRow, ("acme", "e20")))
            session.flush()
            raise Busy

    with pytest.raises(Busy):
        change_and_fail()
    assert documents.get("e20") == E20


def test_tenants_are_added_once_and_found(records: Settings) -> None:
    tenants = Registry(records)
    added = tenants.add("Ёлка", name="Ёлка и Ко", locale="en")
    assert (added.name, added.locale, added.placement.generation) == ("Ёлка и Ко", "en", 1)
    assert added.placement.physical == f"{added.placement.collection}~g000001"
    assert tenants.get("Ёлка") == added
    assert tenants.add("acme").name == "acme"
    assert [tenant.tenant_id for tenant in tenants.list()] == ["acme", "Ёлка"]
    assert tenants.exists("acme")
    assert not tenants.exists("ёлка")
    for tenant_id, code in (("acme", "tenant_exists"), ("", "tenant_id_invalid")):
        with pytest.raises(Invalid) as refused:
            tenants.add(tenant_id)
        assert refused.value.code == code
    with pytest.raises(NotFound, match="tenant_unknown"):
        tenants.get("nobody")
    with acting_as(Tenant("nobody", "anna")), pytest.raises(NotFound, match="tenant_unknown"), registry.changing():
        pass


def test_a_policy_is_in_force_at_once_and_for_its_tenant_alone(acme: Tenant) -> None:
    assert policy.current() == Policy.model_validate({"name": "acme"})
    changed = policy.change(
        top_k=7, locale="en", approved_offers={"cancellation": "Месяц бесплатно."}, allowed_domains=["example.com"]
    )
    assert policy.current() == changed
    assert (changed.top_k, changed.locale, changed.name) == (7, "en", "acme")
    assert registry.current().policy.keys() == {"top_k", "approved_offers", "allowed_domains"}
    with acting_as(OTHER):
        assert policy.current() == Policy.model_validate({"name": "globex"})


def test_documents_are_added_and_removed(acme: Tenant) -> None:
    e10 = DocumentRecord("e10", "E10", "e10.md", "h", (), "2024-01-01")
    documents.put(E20, e10)
    assert documents.all() == (e10, E20)
    changed = DocumentRecord("e20", "E20", "e20.md", "h2", ("c3",), "2024-02-01", "superseded", lang="en")
    documents.put(changed)
    assert documents.get("e20") == changed
    with acting_as(OTHER):
        assert documents.get("e20") is None
        documents.remove("e20")
        assert documents.all() == ()
    documents.remove("e20", "unknown")
    assert documents.all() == (e10,)
    documents.remove()
    documents.put()


def test_many_documents_are_removed_at_once(acme: Tenant) -> None:
    records = [DocumentRecord(f"d{number}", "", "", "", (), "") for number in range(1_200)]
    documents.put(*records)
    documents.remove(*(record.doc_id for record in records[1:]))
    assert [record.doc_id for record in documents.all()] == ["d0"]


def terms(*names: str) -> ChunkTerms:
    return ChunkTerms(frozenset(names), frozenset(f"{name}а" for name in names))


def counts(found: Lexicon) -> tuple[int, dict[str, int], dict[str, int]]:
    return found.chunks, dict(found.stems), dict(found.words)


def test_a_lexicon_counts_chunks_once_each(acme: Tenant) -> None:
    assert lexicon.current() == Lexicon()
    lexicon.apply([terms("слив", "фильтр"), terms("слив")])
    assert counts(lexicon.current()) == (2, {"слив": 2, "фильтр": 1}, {"слива": 2, "фильтра": 1})
    first = lexicon.current()
    assert lexicon.current() is first
    lexicon.apply([terms("насос")], removed=[terms("слив", "фильтр")])
    assert counts(lexicon.current()) == (2, {"слив": 1, "насос": 1}, {"слива": 1, "насоса": 1})
    assert lexicon.current().revision > first.revision
    assert counts(first)[0] == 2
    with acting_as(OTHER):
        assert lexicon.current() == Lexicon()


def test_an_unfinished_run_is_known_to_the_next(acme: Tenant) -> None:
    assert lexicon.begin() is False
    lexicon.apply([terms("слив")])
    assert lexicon.begin() is True
    lexicon.rebuild([terms("насос"), terms("насос")])
    assert counts(lexicon.current()) == (2, {"насос": 2}, {"насоса": 2})
    assert lexicon.begin() is True
    lexicon.finish()
    assert lexicon.begin() is False


def test_differences_are_folded(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_FOLD_WITHIN_RUN", 5)
    monkeypatch.setattr(lexicon, "_FOLD_AFTER_RUN", 2)
    for number in range(10):
        lexicon.apply([terms("все", f"n{number}")])
    with database.reading() as session:
        assert session.query(LexiconPartRow).count() == 5  # one whole of 6, 4 differences after it
    lexicon.finish()
    with database.reading() as session:
        assert session.query(LexiconPartRow).count() == 1
    lexicon._CACHE._entries.clear()
    assert counts(lexicon.current())[:2] == (10, {"все": 10} | {f"n{number}": 1 for number in range(10)})


CHUNKS = st.lists(st.frozensets(st.sampled_from("абвгде"), min_size=1), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CHUNKS, st.integers(0, 3), st.booleans()), max_size=8))
def test_any_history_counts_what_is_left(acme: Tenant, history: list[tuple[list[frozenset[str]], int, bool]]) -> None:
    """Readers of every step and a reader of the final state agree with a fresh count."""
    lexicon.rebuild(())
    left: list[frozenset[str]] = []
    for added, leaving, look in history:
        gone, left = left[:leaving], left[leaving:] + added
        lexicon.apply([ChunkTerms(stems, stems) for stems in added], [ChunkTerms(stems, stems) for stems in gone])
        if look:
            lexicon.current()
    expected = dict(Counter(term for stems in left for term in stems))
    followed = counts(lexicon.current())
    lexicon._CACHE._entries.clear()
    assert followed == counts(lexicon.current()) == (len(left), expected, expected)


def test_concurrent_writers_lose_nothing(acme: Tenant) -> None:
    def write(number: int) -> None:
        for step in range(5):
            lexicon.apply([terms(f"w{number}")])
            documents.put(DocumentRecord(f"{number}-{step}", "", "", "", (), ""))

    with ThreadPoolExecutor(4) as pool:
        for written in [pool.submit(copy_context().run, partial(write, number)) for number in range(4)]:
            written.result()
    assert counts(lexicon.current())[:2] == (20, {f"w{number}": 5 for number in range(4)})
    assert len(documents.all()) == 20


def test_a_ticket_is_stored_with_its_channel(acme: Tenant) -> None:
    policy.change(handoff_channel="support@example.com")
    ticket = handed_over("turn-1", "high_risk", "Верните деньги!", draft="черновик")
    assert (ticket.channel, ticket.reason, ticket.subject) == ("support@example.com", "high_risk", "anna")
    assert tickets.get(ticket.ticket_id) == ticket
    with acting_as(OTHER):
        assert tickets.get(ticket.ticket_id) is None
        assert all_tickets() == ()


def test_the_same_request_is_answered_alike(acme: Tenant) -> None:
    assert idempotency.begin("k1", "hash") is None
    with pytest.raises(Busy) as busy:
        idempotency.begin("k1", "hash")
    assert busy.value.code == "request_in_progress"
    idempotency.finish("k1", '{"a": "ответ"}')
    assert idempotency.begin("k1", "hash") == '{"a": "ответ"}'
    idempotency.abandon("k1")
    assert idempotency.begin("k1", "hash") == '{"a": "ответ"}'
    with pytest.raises(Invalid) as reused:
        idempotency.begin("k1", "another")
    assert reused.value.code == "idempotency_key_reused"


def test_a_key_belongs_to_one_person(acme: Tenant) -> None:
    assert idempotency.begin("k1", "hash") is None
    idempotency.finish("k1", "mine")
    for stranger in (Tenant("acme", "boris"), OTHER):
        with acting_as(stranger):
            assert idempotency.begin("k1", "hash") is None


def test_an_abandoned_key_is_free_again(acme: Tenant) -> None:
    assert idempotency.begin("k1", "hash") is None
    idempotency.abandon("k1")
    assert idempotency.begin("k1", "other") is None
    age("k1", ABANDONED)
    assert idempotency.begin("k1", "third") is None


def test_an_answer_is_kept_for_a_day(acme: Tenant) -> None:
    assert idempotency.begin("k1", "hash") is None
    idempotency.finish("k1", "answer")
    age("k1", RETENTION - timedelta(minutes=1))
    assert idempotency.begin("k1", "hash") == "answer"
    age("k1", RETENTION)
    assert idempotency.begin("k1", "hash") is None


def age(key: str, by: timedelta) -> None:
    with database.writing() as session:
        row = session.get_one(IdempotencyRow, ("acme", "anna", key))
        row.created_at = datetime.now(UTC) - by - timedelta(seconds=1)


@pytest.mark.parametrize("key", ["", "k" * 256, "ключ", "a\nb", "a\0"])
def test_invalid_idempotency_keys_are_refused(installation: Settings, key: str) -> None:
    with acting_as(ANNA), pytest.raises(Invalid) as refused:
        idempotency.begin(key, "hash")
    assert refused.value.code == "idempotency_key_invalid"


def test_nothing_is_reached_without_a_tenant(records: Settings) -> None:
    for reach in (
        documents.all,
        partial(documents.get, "e20"),
        partial(documents.put, E20),
        partial(documents.remove, "e20"),
        lexicon.current,
        lexicon.begin,
        lexicon.finish,
        partial(lexicon.apply, []),
        policy.current,
        partial(tickets.get, "t"),
        partial(handed_over, "t", "r", "q"),
        partial(idempotency.begin, "k", "h"),
    ):
        with pytest.raises(NoTenant):
            reach()
