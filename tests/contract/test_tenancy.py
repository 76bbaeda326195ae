"""Another tenant's rows are invisible, whatever a query forgets: by the session, and again by PostgreSQL."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, event, exists, func, insert, inspect, select, text, union_all, update
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import aliased

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import InternalFault, NoTenant
from tenants.knowledge.tables import DocumentVoteRow, WatchedFileRow
from tenants.storage import database, tenant_session
from tenants.storage.tables import TenantRow
from tests.servers import ORDINARY

ACME, GLOBEX = "acme", "globex"
OTHER = aliased(DocumentVoteRow)


def vote(doc_id: str, helpful: int) -> DocumentVoteRow:
    return DocumentVoteRow(doc_id=doc_id, version=1, helpful=helpful, unhelpful=0)


def file(path: str) -> WatchedFileRow:
    return WatchedFileRow(path=path, size=1, modified_ns=1, doc_ids=[])


@pytest.fixture(autouse=True)
def _both(records: Settings) -> Iterator[None]:
    """Store rows of two tenants that differ by the tenant alone, and act as the first one."""
    for tenant_id, helpful in ((ACME, 1), (GLOBEX, 100)):
        Registry().add(tenant_id)
        with acting_as(Tenant(tenant_id, "anna")), database.writing() as session:
            session.add_all([vote("a", helpful), vote("b", helpful), file("a")])
    with acting_as(Tenant(GLOBEX, "eve")), database.writing() as session:
        session.add_all([vote("secret", 100), file("secret")])
    with acting_as(Tenant(ACME, "anna")):
        yield


def everything() -> set[tuple[str, str, int]]:
    with database.across_tenants() as session:
        return {(row.tenant_id, row.doc_id, row.helpful) for row in session.scalars(select(DocumentVoteRow))}


_BOTH = {(ACME, "a", 1), (ACME, "b", 1), (GLOBEX, "a", 100), (GLOBEX, "b", 100), (GLOBEX, "secret", 100)}
_SECRET = DocumentVoteRow.doc_id == "secret"
_VOTES = select(DocumentVoteRow.doc_id)
_WITH_FILE = select(DocumentVoteRow.doc_id).join(WatchedFileRow, WatchedFileRow.path == DocumentVoteRow.doc_id)


def test_a_query_finds_rows_of_its_tenant_alone() -> None:
    for query, found in (
        (_VOTES, ["a", "b"]),
        (select(DocumentVoteRow.tenant_id).distinct(), [ACME]),
        (_VOTES.where(_SECRET), []),
        (_WITH_FILE, ["a"]),
        (_VOTES.where(DocumentVoteRow.doc_id == WatchedFileRow.path), ["a"]),
        (
            select(WatchedFileRow.path).outerjoin(DocumentVoteRow, _SECRET).where(DocumentVoteRow.doc_id.is_(None)),
            ["a"],
        ),
        (select(OTHER.doc_id), ["a", "b"]),
        (select(_VOTES.subquery()), ["a", "b"]),
        (select(_VOTES.cte()), ["a", "b"]),
        (union_all(_VOTES, select(WatchedFileRow.path)), ["a", "a", "b"]),
        (select(WatchedFileRow.path).where(WatchedFileRow.path.in_(_VOTES)), ["a"]),
        (select(WatchedFileRow.path).where(exists().where(_SECRET)), []),
        (select(func.count()).where(DocumentVoteRow.version == 1), [2]),
        (select(func.count()).select_from(DocumentVoteRow), [2]),
        (select(func.sum(DocumentVoteRow.helpful)), [2]),
        (select(select(func.max(DocumentVoteRow.helpful)).scalar_subquery()), [1]),
        (select(func.max(OTHER.helpful)).having(func.count(OTHER.doc_id) > 2), []),
        (select(TenantRow.tenant_id), [ACME]),
    ):
        with database.reading() as session:
            assert sorted(session.scalars(query), key=str) == found, str(query)


def test_keys_of_another_tenant_are_unknown() -> None:
    with database.reading() as session:
        assert session.get(DocumentVoteRow, (GLOBEX, "secret", 1)) is None
        assert session.find(DocumentVoteRow, "secret", 1) is None
        mine = session.find(DocumentVoteRow, "a", 1)
        assert mine is not None
        assert mine.helpful == 1


def test_changes_reach_rows_of_their_tenant_alone() -> None:
    with database.writing() as session:
        session.execute(update(DocumentVoteRow).values(helpful=7))
        session.execute(update(DocumentVoteRow).values(unhelpful=select(func.max(OTHER.helpful)).scalar_subquery()))
        session.execute(delete(DocumentVoteRow).where(DocumentVoteRow.doc_id.in_(("b", "secret"))))
        assert session.scalars(select(DocumentVoteRow.unhelpful)).all() == [7]
    assert everything() == {(ACME, "a", 7)} | {row for row in _BOTH if row[0] == GLOBEX}


def _add(session: tenant_session.TenantSession) -> None:
    session.add(DocumentVoteRow(tenant_id=GLOBEX, doc_id="c", version=1, helpful=0, unhelpful=0))


def _merge(session: tenant_session.TenantSession) -> None:
    session.merge(DocumentVoteRow(tenant_id=GLOBEX, doc_id="a", version=1, helpful=0, unhelpful=0))


def _give_away(session: tenant_session.TenantSession) -> None:
    session.scalars(select(DocumentVoteRow)).first().tenant_id = GLOBEX  # type: ignore[union-attr]
    session.flush()


def _insert(session: tenant_session.TenantSession) -> None:
    session.execute(insert(DocumentVoteRow), [{"tenant_id": GLOBEX, "doc_id": "c", "version": 1}])


def _query_as_value(session: tenant_session.TenantSession) -> None:
    largest = select(func.max(DocumentVoteRow.helpful)).scalar_subquery()
    session.add(DocumentVoteRow(doc_id="c", version=1, helpful=largest, unhelpful=0))


def _core(session: tenant_session.TenantSession) -> None:
    session.execute(select(DocumentVoteRow.__table__))


def _bare_exists(session: tenant_session.TenantSession) -> None:
    session.execute(select(exists().where(_SECRET)))


def _core_delete(session: tenant_session.TenantSession) -> None:
    session.execute(delete(DocumentVoteRow.__table__))  # type: ignore[arg-type]


def test_foreign_rows_and_unrestricted_statements_are_refused(subtests: pytest.Subtests) -> None:
    for step in (_add, _merge, _give_away, _insert, _core, _core_delete, _bare_exists, _query_as_value):
        refused = pytest.raises(InternalFault, match=r"foreign_row|statement_unrestricted")
        with subtests.test(step=step), refused, database.writing() as session:
            step(session)
        assert everything() == _BOTH


def test_rows_get_their_tenant_from_the_session() -> None:
    with database.writing() as session:
        session.insert_rows(DocumentVoteRow, [{"doc_id": "c", "version": 1, "helpful": 2, "unhelpful": 0}])
        session.merge(vote("a", 3))
        assert session.locked(DocumentVoteRow, doc_id="d", version=1, helpful=4, unhelpful=0).tenant_id == ACME
    assert everything() - _BOTH == {(ACME, "a", 3), (ACME, "c", 2), (ACME, "d", 4)}


def test_without_a_tenant_tables_of_tenants_are_closed() -> None:
    context_of_nobody = context._CURRENT.set(None)
    try:
        for statement in (select(DocumentVoteRow.doc_id), delete(DocumentVoteRow), select(func.count(OTHER.doc_id))):
            with pytest.raises(NoTenant), database.writing() as session:
                session.execute(statement)
        with pytest.raises(NoTenant), database.writing() as session:
            session.add(vote("c", 1))
    finally:
        context._CURRENT.reset(context_of_nobody)


@pytest.fixture
def unrestricted() -> Iterator[None]:
    """Drop the session's criterion and checks."""
    listeners = [("do_orm_execute", tenant_session._restrict), ("before_flush", tenant_session._claim_rows)]
    listeners.append(("before_attach", tenant_session._claim_row))
    for name, listener in listeners:
        event.remove(tenant_session.TenantSession, name, listener)
    yield
    for name, listener in listeners:
        event.listen(tenant_session.TenantSession, name, listener)


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_postgresql_hides_other_tenants_without_the_criterion(unrestricted: None, records: Settings) -> None:
    with database.writing() as session:
        assert session.scalar(text("SELECT current_user")) == ORDINARY
        assert sorted(session.scalars(_VOTES)) == ["a", "b"]
        assert session.scalar(text("SELECT sum(helpful) FROM document_votes")) == 2
        assert session.get(DocumentVoteRow, (GLOBEX, "secret", 1)) is None
        assert session.execute(text("UPDATE document_votes SET helpful = 0 WHERE doc_id = 'secret'")).rowcount == 0  # type: ignore[attr-defined]
        assert session.execute(text("DELETE FROM document_votes WHERE doc_id = 'secret'")).rowcount == 0  # type: ignore[attr-defined]
    with pytest.raises(ProgrammingError, match="row-level security"), database.writing() as session:
        _add(session)
    # Without a tenant, as on a connection that a pooler passes on after a transaction.
    with database.engine(records).connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM document_votes")) == 0
    assert everything() == _BOTH


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_every_table_of_tenants_has_row_level_security(records: Settings) -> None:
    forced = text(
        "SELECT relname FROM pg_class JOIN pg_policy ON polrelid = pg_class.oid "
        "WHERE relrowsecurity AND relforcerowsecurity AND polname = 'opora_tenant'"
    )
    with database.engine(records).connect() as connection:
        schema = inspect(connection)
        owned = {
            table
            for table in schema.get_table_names()
            if any(column["name"] == "tenant_id" for column in schema.get_columns(table))
        }
        assert set(connection.scalars(forced)) == owned


@pytest.mark.parametrize("records", ["pgbouncer"], indirect=True)
def test_tenants_that_share_a_connection_of_the_server_do_not_meet(records: Settings) -> None:
    """Each query is sent without a criterion and without an ORM, so that only PostgreSQL keeps the tenants apart."""
    seen: dict[int, set[str]] = {}

    def ask(tenant_id: str) -> set[str]:
        with acting_as(Tenant(tenant_id, "anna")), database.reading() as session:
            connection = session.connection()
            pid = connection.scalar(text("SELECT pg_backend_pid()")) or 0
            seen.setdefault(pid, set()).add(tenant_id)
            return set(connection.scalars(text("SELECT tenant_id FROM document_votes")))

    with ThreadPoolExecutor(8) as pool:
        asked = [ACME, GLOBEX] * 100
        assert list(pool.map(ask, asked)) == [{tenant_id} for tenant_id in asked]
    assert {ACME, GLOBEX} in seen.values(), "no connection of the server was shared"
    with database.engine(records).connect() as connection:
        assert connection.scalars(text("SELECT tenant_id FROM document_votes")).all() == []


def test_a_role_that_row_level_security_skips_is_warned_of(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    superuser = database._open(Settings.model_validate({"database_url": postgres_url}))
    try:
        database._warn_unless_protected(superuser)
    finally:
        superuser.dispose()
    assert "row-level security is off for the database role opora" in caplog.text
