"""Every table has a documented retention rule, and expired rows are deleted automatically."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, func, select, update

from settings import Settings, get_settings
from tenants.access import issued_tokens, revocations, spending
from tenants.accounts import policy, settings_history
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import store
from tenants.chats import conversation_memory, outbox
from tenants.chats import store as chats
from tenants.chats.tables import ChatRow, OutboxRow
from tenants.core.context import Tenant, acting_as
from tenants.desk import first_run, invitations, operator_sessions, operators
from tenants.privacy import chat_people, persons, retention
from tenants.storage import database
from tenants.work import idempotency, jobs
from tenants.work.tables import LeaseRow
from tests.audits import entry, miss
from tests.chats import ticket_without_chat, webhook
from tests.pages import PAGES, marked

ANNA = Tenant("acme", "anna")
LATER = timedelta(days=2_000)
PRUNED = {name for name, rule in retention.RULES.items() if rule.old is not None}


def retention_table() -> str:
    """Return the table for docs/operate/secure.md: copy it from the failing test."""
    rows = [f"| `{name}` | {rule.kept} |" for name, rule in retention.RULES.items()]
    return "\n".join(["| table | how long |", "|---|---|", *rows])


def test_every_table_has_a_rule() -> None:
    assert set(retention.RULES) == set(Base.metadata.tables)


def test_the_documentation_says_what_the_rules_are() -> None:
    assert marked(PAGES["docs/operate/secure.md"], "retention") == retention_table()


def counts() -> dict[str, int]:
    with database.across_tenants() as session:
        return {
            name: session.scalar(select(func.count()).select_from(Base.metadata.tables[name])) or 0 for name in PRUNED
        }


@pytest.fixture
def full(records: Settings) -> Settings:
    """Store a row in every table that is pruned by age, and rows that stay."""
    first_run.open_link()
    Registry().add("acme")
    invitations.invite("acme")
    with acting_as(ANNA):
        ticket_without_chat("Где?")
        conversation_memory.remember("s1", conversation_memory.PastTurn("Где?", "answered"))
        idempotency.begin("key", "hash")
        job_id = jobs.new_id()
        jobs.add(job_id, "upload", ["a.md"])
        jobs.end(job_id, "done")
        revocations.revoke("subject", "bob")
        issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=60)
        with database.writing() as session:
            session.add(LeaseRow(name="~chat-1", holder="process", until=datetime.now(UTC).timestamp(), wanted=False))
        spending.spend(0.5)
        persons.erase(persons.Person(subject="bob"))
        store.append([entry("turn", at=datetime.now(UTC), misses=[miss("Где ключ?", "ключ")])], records)
        operator_sessions.begin(operators.add("anna", "снег идёт над рекой", role="admin"), address="", browser="")
        webhook("chat.started", "chat.message")
        chats.start()
        for delivery in outbox.claim(10):
            outbox.settle(delivery)
        with database.writing() as session:
            settings_history.note(session, "policy", "changed", before={"top_k": 1}, after={"top_k": 2})
    return get_settings()


def test_what_is_old_goes_and_nothing_else(full: Settings) -> None:
    before = counts()
    assert {name for name, count in before.items() if not count} == set()
    retention.prune()
    assert counts() == before
    retention.prune(datetime.now(UTC) + LATER)
    # A gap is kept as long as a turn that asked it.
    assert {name: count for name, count in counts().items() if count} == {"gaps": 1}
    with acting_as(ANNA):
        store.prune(datetime.now(UTC) + LATER, full)
    retention.prune(datetime.now(UTC) + LATER)
    assert sum(counts().values()) == 0
    assert Registry().exists("acme")
    with acting_as(ANNA):
        assert len(chats.of_caller()) == 1
        assert operators.get("anna")


def test_a_row_that_is_renewed_before_it_is_deleted_stays(full: Settings) -> None:
    if not database.is_shared():
        return  # one transaction writes at a time

    def renew() -> None:
        with database.across_tenants(write=True) as session:
            session.execute(update(OutboxRow).values(state="pending"))

    with ThreadPoolExecutor(1) as pool, before_statements("DELETE FROM outbox", lambda: pool.submit(renew).result()):
        retention.prune(datetime.now(UTC) + LATER)
    assert counts()["outbox"] > 0


def test_a_chat_that_is_deleted_cannot_be_reopened(full: Settings) -> None:
    if not database.is_shared():
        return  # one transaction writes at a time
    free: list[object] = []

    def look() -> None:
        with acting_as(ANNA), database.writing() as session:
            free.extend(session.scalars(select(ChatRow.chat_id).with_for_update(skip_locked=True)))

    with acting_as(ANNA):
        policy.change(chat_days=30)
        with ThreadPoolExecutor(1) as pool, before_statements("DELETE FROM outbox", lambda: pool.submit(look).result()):
            assert chat_people.prune(datetime.now(UTC) + LATER) == 1
    assert free == []


@contextmanager
def before_statements(beginning: str, work: Callable[[], object]) -> Iterator[None]:
    """Do the work before each statement that starts with `beginning`."""

    def listen(*given: object) -> None:
        if str(given[2]).startswith(beginning):
            work()

    event.listen(database.engine(), "before_cursor_execute", listen)
    try:
        yield
    finally:
        event.remove(database.engine(), "before_cursor_execute", listen)
