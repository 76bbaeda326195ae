"""The audit and the gaps on every database: records are stored once, found, verified, erased and pruned."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, event, select, update

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.chain import Head
from tenants.audit.entry import Entry
from tenants.audit.search import TurnQuery
from tenants.audit.store import TurnOwner
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge import catalogue, documents, freshness, gaps
from tenants.knowledge.catalogue import Selection
from tenants.knowledge.documents import DocumentRecord
from tenants.storage import database, searching
from tenants.storage.audit_tables import AuditChainRow, AuditContentRow, AuditRow
from tests.audits import AT, entry, miss

pytestmark = pytest.mark.usefixtures("acme")


def turns_matching(wanted: TurnQuery | None = None) -> list[str]:
    return [record.turn_id for record in search.find(wanted or TurnQuery(), limit=100)]


def faults() -> set[str]:
    return {fault.kind for fault in search.verify().faults}


def test_a_turn_is_recorded_once_and_never_overwritten(records: Settings) -> None:
    assert store.append([entry("t1"), entry("t2"), entry("t1", text="Другой ответ.")], records) == 2
    assert store.append([entry("t2"), entry("t3")], records) == 1
    assert turns_matching() == ["t3", "t2", "t1"]
    content = search.get("t1").content or {}
    assert content["answer"] == {
        "outcome": "answered",
        "refusal_reason": None,
        "answer": {"text": "Ответ."},
        "citations": [],
    }
    assert search.verify().faults == ()


def test_concurrent_writers_build_one_chain(records: Settings) -> None:
    def write(number: int) -> None:
        for turn in range(5):
            store.append([entry(f"t{number}.{turn}"), entry(f"both.{turn}")], records)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    verified = search.verify()
    assert (verified.links, verified.faults) == (25, ())


def test_each_tenant_has_its_own_chain(records: Settings) -> None:
    store.append([entry("t1")], records)
    store.append([entry("t1", tenant_id="globex", question="Чужой вопрос?")], records)
    assert [record.question for record in search.find(TurnQuery())] == ["Вопрос?"]
    with acting_as(Tenant("globex", "bob")):
        assert search.get("t1").question == "Чужой вопрос?"
        assert search.verify().links == 1
        store.erase(TurnOwner(person="p"), records)
    assert search.get("t1").question == "Вопрос?"
    with pytest.raises(NotFound):
        search.get("t2")


def test_search(records: Settings) -> None:
    later = AT + timedelta(hours=1)
    store.append(
        [
            entry("t1", question="Как вернуть ЁЛКУ?", cited={"a.md": ["a1", "a2"]}, found=["b.md"]),
            entry("t2", at=later, outcome="refused", reason="no_relevant_context", session_id="other", found=["a.md"]),
            entry("t3", at=later, text="Скидка 100%_.", person="another"),
        ],
        records,
    )
    assert turns_matching(TurnQuery(since=later)) == ["t3", "t2"]
    assert turns_matching(TurnQuery(until=later)) == ["t1"]
    assert turns_matching(TurnQuery(outcome="refused")) == ["t2"]
    assert turns_matching(TurnQuery(reason="no_relevant_context")) == ["t2"]
    assert turns_matching(TurnQuery(document="a.md")) == ["t2", "t1"]
    assert turns_matching(TurnQuery(document="a.md", cited=True)) == ["t1"]
    assert turns_matching(TurnQuery(document="b.md", cited=True)) == []
    assert turns_matching(TurnQuery(text="елку")) == ["t1"]
    assert turns_matching(TurnQuery(text="100%_")) == ["t3"]
    assert turns_matching(TurnQuery(text="1_0")) == []
    assert turns_matching(TurnQuery(session_id="other")) == ["t2"]
    assert turns_matching(TurnQuery(person="another")) == ["t3"]
    first = search.find(TurnQuery(), limit=2)
    assert [record.turn_id for record in first] == ["t3", "t2"]
    assert turns_matching(TurnQuery(before=first[-1].sequence)) == ["t1"]


def test_lists_of_turns_let_questions_go_first(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append([entry(f"t{number}") for number in range(5)], records)
    for listed in (search.find, lambda _: search.unjudged("anna")):
        yields: list[bool] = []
        monkeypatch.setattr(fairness, "yield_to_questions", lambda seen=yields: seen.append(True))
        assert len(listed(TurnQuery())) == len(yields) == 5


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_a_long_search_for_a_text_is_given_up(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append([entry("t1"), entry("t2")], records)
    monkeypatch.setattr(searching, "SECONDS", 0)
    monkeypatch.setattr(searching, "_INSTRUCTIONS", 10)
    with pytest.raises(Invalid, match="search_too_long"):
        search.find(TurnQuery(text="вопрос"))
    assert turns_matching() == ["t2", "t1"]


def test_tampering_with_the_database_is_detected(records: Settings) -> None:
    harms = (
        (update(AuditRow).where(AuditRow.sequence == 2).values(outcome="refused"), "changed"),
        (update(AuditRow).where(AuditRow.sequence == 2).values(at=datetime(2020, 1, 1, tzinfo=UTC)), "changed"),
        (update(AuditContentRow).where(AuditContentRow.sequence == 2).values(body=b"junk"), "content_changed"),
        (update(AuditContentRow).where(AuditContentRow.sequence == 2).values(person="x"), "content_changed"),
        (delete(AuditContentRow).where(AuditContentRow.sequence == 2), "content_missing"),
        (delete(AuditRow).where(AuditRow.sequence == 2), "missing"),
        (delete(AuditRow).where(AuditRow.sequence == 1), "missing"),
        (delete(AuditRow).where(AuditRow.sequence == 4), "cut_off"),
        (delete(AuditChainRow), "cut_off"),
    )
    for number, (harm, seen) in enumerate(harms):
        tenant_id = f"harmed-{number}"
        Registry(records).add(tenant_id)
        store.append([entry(f"t{turn}", tenant_id=tenant_id) for turn in range(4)], records)
        with acting_as(Tenant(tenant_id, "anna")):
            assert faults() == set()
            with database.writing() as session:
                session.execute(harm)
            assert seen in faults(), str(harm)


def test_erasing_a_person_deletes_content_and_keeps_the_chain(records: Settings) -> None:
    asked = miss("Где мой секрет?", "секрет")
    shared = miss("Где все?", "все")
    store.append([entry("t1", question="Где мой секрет?", misses=[asked, shared])], records)
    store.append([entry("t2", person="other", misses=[shared])], records)
    assert store.erase(TurnOwner(person="p"), records) == ("t1",)
    assert [record.question for record in search.find(TurnQuery())] == ["Вопрос?", None]
    assert turns_matching(TurnQuery(text="секрет")) == []
    verified = search.verify()
    assert (verified.links, verified.erased, verified.faults) == (3, 1, ())
    assert [(gap.question, gap.count) for gap in gaps.all()] == [("Где все?", 1)]
    with database.reading() as session:
        assert session.scalars(select(AuditContentRow.person)).all() == ["other"]


def test_entries_that_arrive_after_an_erasure_are_stored_erased(records: Settings) -> None:
    before, after = datetime.now(UTC) - timedelta(seconds=5), datetime.now(UTC) + timedelta(seconds=60)
    store.erase(TurnOwner(person="p", session_id="s"), records)
    on_its_way = [
        entry("t1", at=before, misses=[miss("Где?")]),
        entry("t2", at=before, session_id="another"),
        entry("t3", at=after),
    ]
    store.append(on_its_way, records)
    assert {record.turn_id: record.content is None for record in search.find(TurnQuery())} == {
        "t1": True,
        "t2": False,
        "t3": False,
    }
    assert gaps.all() == ()
    assert search.verify().faults == ()


def test_pruning_drops_what_is_old_and_the_chain_still_verifies(records: Settings) -> None:
    turns = [entry(f"t{number}", at=AT + timedelta(days=number)) for number in range(6)]
    store.append(turns, records)
    early = search.verify().head
    assert store.prune(AT + timedelta(days=4), records) == 4
    assert turns_matching() == ["t5", "t4"]
    assert search.verify().faults == ()
    assert search.verify(Head(early.sequence, early.hash)).faults == ()
    assert store.prune(AT + timedelta(days=4), records) == 0
    store.append([entry("t9")], records)
    assert store.prune(datetime.now(UTC) + timedelta(days=1), records) == 4
    assert (search.verify().links, search.verify().faults) == (1, ())


def test_a_gap_is_counted_closed_and_opens_again(records: Settings) -> None:
    def ask(turn_id: str, at: datetime, *doc_ids: str) -> None:
        store.append([entry(turn_id, at=at, misses=[miss("Есть рассрочка?", "рассрочк", doc_ids=doc_ids)])], records)

    ask("t1", AT, "far.md")
    ask("t1", AT, "far.md")
    ask("t2", AT + timedelta(hours=1), "near.md", "far.md")
    (gap,) = gaps.all()
    assert (gap.count, gap.reopened, gap.doc_ids) == (2, 0, ("near.md", "far.md"))
    assert (gap.first_at, gap.last_at) == (AT, AT + timedelta(hours=1))
    closed = gaps.decide([gap.gap_id], "closed")[0]
    assert gaps.all() == ()
    assert [gap.gap_id for gap in gaps.all("closed")] == [gap.gap_id]
    assert closed.closed_at is not None
    ask("late", closed.closed_at - timedelta(hours=1))
    assert gaps.all() == ()
    ask("t3", closed.closed_at + timedelta(hours=1))
    (again,) = gaps.all()
    assert (again.count, again.reopened, again.closed_at) == (4, 1, None)
    gaps.decide([gap.gap_id], "closed")
    assert gaps.decide([gap.gap_id], "open")[0].status == "open"
    with acting_as(Tenant("globex", "bob")), pytest.raises(NotFound):
        gaps.decide([gap.gap_id], "closed")


def test_many_gaps_are_decided_by_few_statements(records: Settings) -> None:
    misses = [miss(f"Есть ли {number}?", str(number)) for number in range(30)]
    store.append([entry("t1", at=AT, misses=misses)], records)
    gap_ids = [gap.gap_id for gap in gaps.all()]
    statements: list[object] = []
    event.listen(database.engine(records), "after_cursor_execute", lambda *given: statements.append(given[2]))
    assert [gap.gap_id for gap in gaps.decide(gap_ids, "dismissed")] == gap_ids
    assert len(statements) < 20, "other writers of SQLite wait meanwhile"
    with pytest.raises(NotFound):
        gaps.decide([gap_ids[0], "unknown"], "open")
    assert gaps.counts()["dismissed"] == 30


def test_the_meanings_of_many_gaps_are_written_by_one_statement(records: Settings) -> None:
    misses = [miss(f"Есть ли {number}?", str(number)) for number in range(30)]
    store.append([entry("t1", at=AT, misses=misses)], records)
    made = {gap.gap_id: (bytes([number]), f"made of {number}") for number, gap in enumerate(gaps.all())}
    statements: list[object] = []
    event.listen(database.engine(records), "after_cursor_execute", lambda *given: statements.append(given[2]))
    gaps.put_vectors(made | {"gone": (b"", "")})
    assert len([one for one in statements if "UPDATE gaps" in str(one)]) == 1
    assert {gap.gap_id: (gap.vector, gap.vector_of) for gap in gaps.all()} == made


def document(doc_id: str, *chunk_ids: str, status: str = "active", day: str = "2024-10-01") -> DocumentRecord:
    return DocumentRecord(doc_id, doc_id.upper(), doc_id, "hash", chunk_ids, day, status=status)


def test_stale_cited_documents_are_reported(records: Settings) -> None:
    now = datetime.now(UTC)
    today = f"{now:%F}"
    documents.put(
        document("fine", "f1", day=today),
        document("edited", "e2", day=today),
        document("replaced", "r1", status="superseded", day=today),
        document("ancient", "a1", day="2019-01-01"),
        document("unread", "u1", day="2019-01-01"),
    )
    cited = {"fine": ["f1"], "edited": ["e1"], "replaced": ["r1"], "ancient": ["a1"], "gone": ["g1"]}
    turns: list[Entry] = [
        entry("t1", at=now, cited=cited, found=["unread"]),
        entry("t2", at=now - timedelta(days=1), cited={"ancient": ["a1"]}),
        entry("t3", at=now - timedelta(days=60), cited={"fine": ["f0"], "unread": ["u0"]}),
        entry("t4", at=now, cited={"tool:orders": ["tool:orders:1"]}),
    ]
    store.append(turns, records)
    stale = freshness.stale()
    assert {item.doc_id: item.doubts for item in stale} == {
        "ancient": ("old",),
        "edited": ("changed",),
        "replaced": ("superseded",),
        "gone": ("removed",),
    }
    assert (stale[0].doc_id, stale[0].citations, stale[0].title) == ("ancient", 2, "ANCIENT")
    assert stale[0].last_cited_at == now
    assert next(catalogue.batches(Selection(stale=True), 9)) == ["ancient", "edited", "replaced"]
    assert next(catalogue.batches(Selection(stale=False), 9)) == ["fine", "unread"]
    assert "unread" in {item.doc_id for item in freshness.stale(cited_within=timedelta(days=90))}


def test_the_export_is_the_chain_in_order(records: Settings) -> None:
    store.append([entry(f"t{number}", at=AT + timedelta(days=number)) for number in range(3)], records)
    assert [link.turn_id for link in search.links()] == ["t0", "t1", "t2"]
    between = search.links(AT + timedelta(days=1), AT + timedelta(days=2))
    assert [link.turn_id for link in between] == ["t1"]
