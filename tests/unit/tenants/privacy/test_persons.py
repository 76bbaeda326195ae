"""Export and erasure of a person: every byte of the data folder is searched for a canary."""

import json
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from settings import Settings, get_settings
from tenants.access import issued_tokens
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.chats import consents, conversation_memory, files, sites, tickets
from tenants.chats import store as chats
from tenants.chats.conversation_memory import PastTurn
from tenants.chats.records import HandoffRequest
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import InternalFault, Invalid, TryAgain
from tenants.desk import articles, feedback
from tenants.insight import traces
from tenants.knowledge import gaps
from tenants.privacy import erasures, persons, retention
from tenants.privacy.persons import ErasureReport, Person
from tenants.storage import database
from tenants.work import idempotency, jobs
from tenants.work.tables import IdempotencyRow
from tests.audits import entry, miss
from tests.chats import all_tickets, handed_over, ticket_without_chat, webhook

CANARY = "канарейка-7391"
ANNA, BOB = Tenant("acme", "anna"), Tenant("acme", "bob")


@pytest.fixture(autouse=True)
def _tenants(installation: Settings) -> Iterator[None]:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)
    with acting_as(ANNA):
        yield


def leave_traces(installation: Settings, tenant: Tenant, word: str, session_id: str) -> None:
    """Ask, hand over and repeat a request; leave one record pending, and one set aside."""
    person_digest = persons.digest(tenant.tenant_id, tenant.subject)
    turns = [
        entry(
            f"{tenant.tenant_id}.{tenant.subject}.{session_id}.{number}",
            tenant_id=tenant.tenant_id,
            at=datetime.now(UTC),
            person=person_digest,
            session_id=session_id,
            question=f"Где {word}?",
            text=f"Ответ про {word}.",
            misses=[miss(f"Где {word}?", word), miss("Где все?", "все")],
        )
        for number in range(3)
    ]
    with acting_as(tenant):
        store.append(turns[:1], installation)
        feedback.give(turns[0].turn_id, person_digest, "down", "wrong", word)
        handed_over("t", "user_request", f"Где {word}?", session_id=session_id, draft=word)
        conversation_memory.remember(session_id, PastTurn(f"Где {word}?", "answered"))
        idempotency.begin(f"key-{session_id}", "hash")
        jobs.add(jobs.new_id(), "upload", ["a.md"])
        issued_tokens.issue(subject=tenant.subject, scopes=["ask"], ttl_seconds=60)
        idempotency.finish(f"key-{session_id}", json.dumps({"session_id": session_id, "text": word}))
    left_behind = Recorder(installation)
    left_behind.spool.append(turns[1])
    left_behind.spool.cut()
    left_behind.spool.quarantine(turns[2].line())


def holding(folder: Path, word: str) -> list[str]:
    """Return the files that contain the word, plain or as escaped in JSON."""
    forms = (word.encode(), json.dumps(word)[1:-1].encode())
    return [
        path.name for path in folder.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


def test_every_table_that_knows_a_person_is_in_the_list() -> None:
    listed = {"audit_contents", "erasures", "feedback", "tickets", "idempotency", "conversations", "jobs"}
    listed |= {"chats", "consents", "tokens"}
    knowing = {
        table.name
        for table in Base.metadata.tables.values()
        if {"subject", "person", "session_id"} & {column.name for column in table.columns}
    }
    assert knowing == listed, "a new table about people belongs into tenants.privacy.persons, and into this list"


def test_the_words_of_who_is_erased_go_from_a_gap_that_others_share(installation: Settings) -> None:
    turns = [
        entry(
            f"turn-{tenant.subject}",
            at=datetime.now(UTC),
            person=persons.digest("acme", tenant.subject),
            misses=[miss(wording, "где")],
        )
        for tenant, wording in ((ANNA, f"Где, {CANARY}?"), (BOB, "Где?"))
    ]
    store.append(turns, installation)
    assert [gap.question for gap in gaps.all()] == [f"Где, {CANARY}?"]
    persons.erase(Person(subject="anna"))
    assert {gap.question: gap.count for gap in gaps.all()} == {"Где?": 1}
    database.close_all()
    assert holding(installation.data_dir, CANARY) == []


def test_what_an_operator_needs_is_encrypted_at_rest(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = handed_over("t", "user_request", f"Где {CANARY}?", draft=CANARY)
    idempotency.begin("key", "hash")
    idempotency.finish("key", json.dumps({"text": CANARY}))
    assert holding(installation.data_dir, CANARY) == []
    assert tickets.get(ticket.ticket_id) == ticket
    assert idempotency.begin("key", "hash") == json.dumps({"text": CANARY})
    own = (installation.data_dir / "keys" / "data.key").read_text()
    assert (installation.data_dir / "keys" / "data.key").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("OPORA_DATA_KEYS", f"new, {own}")
    get_settings.cache_clear()
    assert tickets.get(ticket.ticket_id) == ticket
    monkeypatch.setenv("OPORA_DATA_KEYS", "new")
    get_settings.cache_clear()
    with pytest.raises(InternalFault, match="data_key_wrong"):
        tickets.get(ticket.ticket_id)


def test_tickets_and_answers_go_in_time(installation: Settings) -> None:
    ticket_without_chat("Где?")
    idempotency.begin("key", "hash")
    for later, left in ((timedelta(hours=23), 1), (timedelta(days=500), 0)):
        retention.prune(datetime.now(UTC) + later)
        with database.reading() as session:
            rows = session.query(IdempotencyRow).count()
        assert (len(all_tickets()), rows) == (left, left)


def test_erasing_leaves_no_byte(installation: Settings) -> None:
    leave_traces(installation, ANNA, CANARY, "s1")
    leave_traces(installation, BOB, "сосед", "s2")
    leave_traces(installation, Tenant("globex", "anna"), "чужая", "s1")
    webhook("chat.message", "chat.rated", "chat.handoff")
    chat_id = chats.start().chat_id
    chats.post(chat_id, f"Где {CANARY}?")
    file = files.add(chat_id, f"{CANARY}.txt", "text/plain", CANARY.encode())
    files.add(chat_id, f"{CANARY}-не-отправлен.txt", "text/plain", CANARY.encode())
    chats.post(chat_id, CANARY, file_id=file.file_id)
    chats.hand_over(chat_id, HandoffRequest("user_request", question=CANARY, draft=CANARY))
    chats.rate(chat_id, 1, CANARY)
    with acting_as(Tenant("acme", "bob", SCOPES)):
        chats.take(chat_id)  # the chat then says until when that can be undone
    consents.give(f"Согласен, {CANARY}", site="", address="192.0.2.1")
    consents.withdraw("")
    assert {"opora.db-wal", "aside.txt"} <= set(holding(installation.data_dir, CANARY))

    exported = persons.export(Person(subject="anna"))
    assert [len(rows) for rows in exported.values()] == [1, 1, 1, 2, 1, 2, 1, 1, 1, 0]
    assert json.dumps(exported, ensure_ascii=False).count(CANARY) >= 5
    chat = next(chat for chat in exported["chats"] if isinstance(chat, dict) and chat["chat_id"] == chat_id)
    contents = [b64decode(one["content_base64"]).decode() for one in chat["files"]]
    assert contents == [CANARY, CANARY]
    assert [CANARY in one["body"] for one in chat["webhooks"]].count(True) == 4
    assert (chat["csat_comment"], CANARY in str(exported["consents"])) == (CANARY, True)
    assert "сосед" not in json.dumps(exported, ensure_ascii=False)

    assert persons.erase(Person(subject="anna")) == ErasureReport(
        turns=3, feedback=1, conversations=1, chats=2, tickets=2, answers=1, jobs=1, traces=0
    )
    database.close_all()
    assert holding(installation.data_dir, CANARY) == []
    assert persons.export(Person(subject="anna")) == {
        "turns": [],
        "feedback": [],
        "conversations": [],
        "chats": [],
        "consents": [],
        "tickets": [],
        "answers": [],
        "jobs": [],
        "tokens": [],
        "traces": [],
    }
    verified = search.verify()
    assert (verified.erased, verified.faults) == (2, ())
    assert {gap.question: gap.count for gap in gaps.all()} == {"Где все?": 2, "Где сосед?": 2}
    assert len(persons.export(Person(subject="bob"))["turns"]) == 2
    with acting_as(Tenant("globex", "anna")):
        assert [len(rows) for rows in persons.export(Person(subject="anna")).values()] == [2, 1, 1, 1, 0, 1, 1, 1, 1, 0]


def test_one_session_of_a_person_can_go_alone(installation: Settings) -> None:
    leave_traces(installation, ANNA, CANARY, "s1")
    leave_traces(installation, ANNA, "остаётся", "s2")
    assert persons.erase(Person("anna", "s1")) == ErasureReport(
        turns=3, feedback=1, conversations=1, chats=1, tickets=1, answers=1, jobs=0, traces=0
    )
    database.close_all()
    assert holding(installation.data_dir, CANARY) == []
    assert [len(rows) for rows in persons.export(Person(session_id="s2")).values()] == [2, 1, 1, 1, 0, 1, 1, 0, 0, 0]


def test_pending_records_of_an_erased_person_are_stored_erased(installation: Settings) -> None:
    living = Recorder(installation)
    person_digest = persons.digest("acme", "anna")
    living.record(entry("t1", at=datetime.now(UTC), person=person_digest, question=CANARY))
    persons.erase(Person(subject="anna"))
    living.close()
    database.close_all()
    assert holding(installation.data_dir, CANARY) == []
    assert search.get("t1").content is None
    assert search.verify().faults == ()


@pytest.mark.parametrize("subject", [None, "u:1"])
def test_a_person_has_to_be_named(subject: str | None) -> None:
    with pytest.raises(Invalid, match="person_missing"):
        Person(subject, "")


def test_a_site_is_asked_for_even_if_its_chats_are_gone() -> None:
    for key in ("brand-a", "brand-b"):
        sites.add(key, [], key=key, identified=True)
    customer_at("brand-a")
    with pytest.raises(Invalid, match="person_at_several_sites"):
        persons.erase(Person("u:1"))
    assert persons.erase(Person("u:1", site="brand-a")).chats == 1
    assert persons.erase(Person("anna")).chats == 0


def test_the_question_of_an_erased_person_goes_from_drafts() -> None:
    asked = entry("t1", at=datetime.now(UTC), person=persons.digest("acme", "anna"), misses=[miss(CANARY, "где")])
    store.append([asked], get_settings())
    drafts = [articles.add(articles.Draft("Склад", "На Лесной.", questions=(CANARY, "Где склад?"))) for _ in range(2)]
    persons.erase(Person(subject="anna"))
    left = [articles.get(one.article_id) for one in drafts]
    assert [one.draft.questions for one in left] == [("Где склад?",)] * 2
    assert {one.version for one in left} == {drafts[0].version + 1}


def customer_at(*written_at: str) -> list[str]:
    """Let the customer `u:1` write at these sites, one chat each; return the chats' ids."""
    chat_ids = []
    for site in written_at:
        with acting_as(Tenant("acme", "u:1", site=site)):
            chat_ids.append(chats.start(site=site).chat_id)
            consents.give("Согласен", site=site, address="192.0.2.1")
    return chat_ids


def kept_of_customer() -> tuple[int, int]:
    """Return how many chats and consents of the customer are left."""
    left = persons.export(Person("u:1", site="*"))
    return len(left["chats"]), len(left["consents"])


@pytest.mark.parametrize("site", ["", "Brand A", "brand-c"])
def test_a_site_is_named_by_a_key_that_exists(installation: Settings, site: str) -> None:
    sites.add("Brand A", [], key="brand-a")
    customer_at("brand-a", "brand-b")
    for refused in (persons.export, persons.erase):
        with pytest.raises(Invalid, match="person_site_unknown") as raised:
            refused(Person("u:1", site=site))
        assert raised.value.params["sites"] == "brand-a (Brand A), brand-b"
    assert kept_of_customer() == (2, 2)
    assert not (installation.data_dir / "erasures.jsonl").exists()


def test_a_customer_of_a_removed_site_can_be_erased() -> None:
    sites.add("Brand C", [], key="brand-c")
    customer_at("brand-a", "brand-b")
    assert persons.erase(Person("u:1", site="brand-b")).chats == 1
    assert persons.erase(Person("u:1", site="brand-c")).chats == 0
    assert kept_of_customer() == (1, 1)


@pytest.mark.parametrize("subject", ["u:1", None])
@pytest.mark.parametrize("site", ["brand-a", "*", ""])
def test_a_chat_is_named_without_its_site(installation: Settings, subject: str | None, site: str) -> None:
    first, _ = customer_at("brand-a", "brand-a")
    with pytest.raises(Invalid, match="person_site_beside_session"):
        persons.erase(Person(subject, first, site))
    assert persons.erase(Person(subject, first)).chats == 1
    (noted,) = erasures.read(installation.data_dir / "erasures.jsonl")
    persons.erase_again(noted)
    assert kept_of_customer() == (1, 2)


def test_chats_at_a_site_are_kept_until_their_traces_are_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    customer_at("brand-a", "brand-a", "brand-b")
    erased: list[str] = []

    def erase(_person: str, session_id: str) -> int:
        if len(erased) == 1 and not is_back:
            raise TryAgain
        erased.append(session_id)
        return 1

    is_back = False
    monkeypatch.setattr(traces, "erase", erase)
    with pytest.raises(TryAgain):
        persons.erase(Person("u:1", site="brand-a"))
    assert kept_of_customer() == (2, 3)
    is_back = True
    report = persons.erase(Person("u:1", site="brand-a"))
    assert (report.chats, report.traces, len(set(erased))) == (1, 1, 2)
    assert kept_of_customer() == (1, 1)
