"""Row locks with PostgreSQL: which transactions wait for each other, and which must not."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from time import monotonic
from typing import TypeVar

import pytest
from sqlalchemy import Engine, create_engine, make_url, select, text

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.audit.store import TurnOwner
from tenants.core.context import Tenant, acting_as
from tenants.desk import feedback
from tenants.knowledge import catalogue, documents, gaps, generations, lexicon
from tenants.knowledge.catalogue import Selection
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.lexicon import ChunkTerms
from tenants.knowledge.tables import LexiconPartRow
from tenants.storage import database
from tenants.storage.tables import TenantRow
from tenants.work import jobs
from tenants.work.jobs import Job
from tenants.work.tables import JobRow
from tests.audits import entry
from tests.chats import handed_over
from tests.webhooks import wait_until

PATIENCE_SECONDS = 30
T = TypeVar("T")

pytestmark = pytest.mark.parametrize("records", ["postgresql"], indirect=True)


@pytest.fixture(autouse=True)
def acme(records: Settings) -> Iterator[Tenant]:
    Registry().add("acme")
    store.append([entry("t1", person="anna")], records)
    with acting_as(Tenant("acme", "anna")) as tenant:
        yield tenant


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def begin(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> "Future[T]":
    """Do it in another thread, as the same tenant."""
    return pool.submit(copy_context().run, work, *arguments)


def until_done_or_waiting(records: Settings, work: "Future[T]") -> None:
    """Wait until something is done, or waits for a lock."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    deadline = monotonic() + PATIENCE_SECONDS
    # Within a transaction the server shows its activity as of the first query.
    with database.engine(records).connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not work.done() and not connection.scalar(waiting):
            assert monotonic() < deadline
            Event().wait(0.01)


def test_a_verdict_and_an_erasure_of_its_turn_do_not_wait_for_each_other(
    records: Settings, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure has the chain and wants the turn; the verdict has the turn and wants to refer to the tenant."""
    erasing, go_on = Event(), Event()
    forget = gaps.forget

    def forget_later(*arguments: object) -> None:
        erasing.set()
        assert go_on.wait(PATIENCE_SECONDS)
        forget(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gaps, "forget", forget_later)
    erased = begin(pool, store.erase, TurnOwner("anna"), records)
    assert erasing.wait(PATIENCE_SECONDS)
    given = begin(pool, feedback.give, "t1", "anna", "up")
    until_done_or_waiting(records, given)
    go_on.set()
    assert given.result(PATIENCE_SECONDS).thumb == "up"
    assert erased.result(PATIENCE_SECONDS) == ("t1",)
    assert feedback.latest() == ()


def test_whoever_changes_a_tenant_holds_up_nobody_who_records_for_it(pool: ThreadPoolExecutor) -> None:
    with database.writing() as session:
        session.get_one(TenantRow, "acme", with_for_update={"key_share": True}).name = "Acme"
        assert begin(pool, handed_over, "t1", "user_request", "Q").result(PATIENCE_SECONDS)


def test_the_audit_and_ingestion_do_not_wait_for_each_other(records: Settings, pool: ThreadPoolExecutor) -> None:
    terms = ChunkTerms(frozenset({"вода"}), frozenset({"воды"}))
    with store._appending(records):
        begin(pool, lexicon.apply, [terms]).result(PATIENCE_SECONDS)
        assert begin(pool, generations.begin, "").result(PATIENCE_SECONDS) == 2


def test_a_locked_chain_delays_no_other_tenant(records: Settings, pool: ThreadPoolExecutor) -> None:
    Registry().add("globex")
    locked, go_on = Event(), Event()

    def hold() -> None:
        with store._appending(records):
            locked.set()
            assert go_on.wait(PATIENCE_SECONDS)

    held = begin(pool, hold)
    assert locked.wait(PATIENCE_SECONDS)
    carrier = Recorder(records)
    for tenant_id in ("acme", "globex"):
        carrier.spool.append(entry(f"{tenant_id} 0", tenant_id=tenant_id))  # of a replica without its database
        carrier.record(entry(f"{tenant_id} 1", tenant_id=tenant_id))
    carrier.start()
    wait_until(lambda: turns("globex") == {"globex 0", "globex 1"})
    assert turns("acme") == {"t1"}
    go_on.set()
    held.result(PATIENCE_SECONDS)
    wait_until(lambda: turns("acme") == {"t1", "acme 0", "acme 1"})
    carrier.close()


def turns(tenant_id: str) -> set[str]:
    """Return the recorded turns of a tenant."""
    with acting_as(Tenant(tenant_id, "tests")):
        return {one.turn_id for one in search.find(search.TurnQuery())}


def test_a_job_that_is_being_begun_is_cancelled_as_a_running_one(records: Settings, pool: ThreadPoolExecutor) -> None:
    jobs.add("j1", "upload", ["a.md"])
    with database.writing() as session:
        row = session.scalars(select(JobRow).with_for_update()).one()
        cancelled = begin(pool, jobs.cancel, "j1")
        until_done_or_waiting(records, cancelled)
        row.state = "running"
    job: Job = cancelled.result(PATIENCE_SECONDS)
    assert (job.state, job.cancelling) == ("running", True)


def test_a_vocabulary_is_folded_without_a_lock(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts added during a fold are neither lost nor delayed."""
    monkeypatch.setattr(lexicon, "_FOLD_AFTER_RUN", 2)
    terms = ChunkTerms(frozenset({"вода"}), frozenset({"воды"}))
    for _ in range(4):
        lexicon.apply([terms])
    packed, folding, go_on = lexicon._packed, Event(), Event()

    def pack_later(body: lexicon._Body) -> bytes:
        if body["chunks"] == 4:
            folding.set()
            assert go_on.wait(PATIENCE_SECONDS)
        return packed(body)

    monkeypatch.setattr(lexicon, "_packed", pack_later)
    finished = begin(pool, lexicon.finish)
    assert folding.wait(PATIENCE_SECONDS)
    begin(pool, lexicon.apply, [terms]).result(PATIENCE_SECONDS)
    go_on.set()
    finished.result(PATIENCE_SECONDS)
    with database.reading() as session:
        assert session.query(LexiconPartRow).count() == 2
    assert (lexicon.current().chunks, dict(lexicon.current().stems)) == (5, {"вода": 5})


def test_a_fold_of_what_was_rebuilt_meanwhile_is_given_up(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexicon, "_FOLD_AFTER_RUN", 1)
    terms = ChunkTerms(frozenset({"вода"}), frozenset({"воды"}))
    for _ in range(3):
        lexicon.apply([terms])
    packed = lexicon._packed

    def rebuild_first(body: lexicon._Body) -> bytes:
        monkeypatch.setattr(lexicon, "_packed", packed)
        begin(pool, lexicon.rebuild, [terms]).result(PATIENCE_SECONDS)
        return packed(body)

    monkeypatch.setattr(lexicon, "_packed", rebuild_first)
    lexicon.finish()
    assert lexicon.current().chunks == 1


def plan(engine: Engine, query: str) -> str:
    """Return PostgreSQL's plan for a query over many rows."""
    with engine.connect() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        connection.execute(text("SET LOCAL enable_sort = off"))
        return "\n".join(connection.execute(text(f"EXPLAIN {query}")).scalars())


def test_audit_search_uses_an_index_without_row_level_security(records: Settings, postgres_url: str) -> None:
    """Row-level security comes before conditions that could reveal other rows, such as LIKE ."""
    query = "SELECT 1 FROM audit_contents WHERE text LIKE '%возврат%'"
    superuser = create_engine(make_url(postgres_url).set(database=make_url(records.database).database))
    assert "ix_pg_audit_contents_text" in plan(superuser, query)
    superuser.dispose()
    assert len(search.find(search.TurnQuery(text="вопрос"))) <= 1


def test_pages_of_documents_are_read_by_an_index(records: Settings) -> None:
    documents.put(*(DocumentRecord(doc_id, "", "", "", (), "") for doc_id in ("я", "a", "Ё", "B")))
    assert [one.doc_id for one in catalogue.page(Selection(), after="B", limit=2).documents] == ["a", "Ё"]
    wanted = "SELECT doc_id FROM documents WHERE tenant_id = 'acme' AND doc_id COLLATE \"C\" > 'a'"
    assert "ix_pg_documents_characters" in plan(
        database.engine(records), f'{wanted} ORDER BY doc_id COLLATE "C" LIMIT 50'
    )
