"""Changes of one tenant at the same moment, on PostgreSQL: limits hold, and who comes second is not our fault."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier, Event
from time import monotonic
from uuid import uuid4

import pytest
from sqlalchemy import delete, func, select, text

from settings import Settings
from tenants.access import issued_tokens, token_uses
from tenants.access.revocations import token_id
from tenants.accounts.registry import Registry
from tenants.chats import sites, webhooks
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound, OporaError, TryAgain
from tenants.desk import articles, invitations, operators, replies
from tenants.desk.articles import Draft
from tenants.desk.tables import InvitationRow
from tenants.knowledge import document_edges, gaps, rejected, tools
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.rejected import Rejected
from tenants.knowledge.tables import DocumentRow, EdgeRow, GapRow
from tenants.knowledge.tools import Tool
from tenants.storage import database
from tenants.storage.tenant_session import TenantSession
from tests import servers
from tests.attack.attacking import PATIENCE_SECONDS, VICTIM
from tests.records import row
from tests.service.serving import in_force

AT_ONCE, MOST = 10, 3
EDGE = Edge("a.md", "related", "b.md")
BLOCKED = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@pytest.fixture(scope="module", autouse=True)
def _tenant(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with servers.own_database(postgres_url) as url:
        address = url.render_as_string(hide_password=False)
        with in_force(Settings(data_dir=tmp_path_factory.mktemp("at-once"), database_url=address)):
            Registry().add(VICTIM)
            with acting_as(Tenant(VICTIM, "anna")):
                yield


def tool(name: str) -> Tool:
    parameters = {"type": "object", "properties": {}}
    return Tool.model_validate(
        {"name": name, "title": "T", "description": "D", "url": "https://shop.example/", "parameters": parameters}
    )


@pytest.mark.parametrize(
    ("limit", "add"),
    [
        ((webhooks, "MAX_WEBHOOKS"), lambda number: webhooks.add(f"https://shop.example/{number}")),
        ((tools, "MAX_TOOLS"), lambda number: tools.put(tool(f"t{number}"))),
        ((articles, "MOST"), lambda number: articles.add(Draft(f"Title {number}", "Text."))),
        ((replies, "MOST"), lambda number: replies.add(f"Title {number}", "Text.")),
        ((sites, "MAX_SITES"), lambda number: sites.add(f"Site {number}", ["https://shop.example"])),
        ((rejected, "MAX_REJECTED"), lambda number: rejected.put(Rejected(f"Approach {number}"))),
        (
            (issued_tokens, "MAX_TOKENS"),
            lambda number: issued_tokens.issue(subject=f"bot-{number}", scopes=["ask"], ttl_seconds=600),
        ),
    ],
)
def test_a_limit_holds_however_many_add_at_once(
    limit: tuple[object, str], add: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*limit, MOST)
    together = Barrier(AT_ONCE)

    def added(number: int) -> bool:
        together.wait(PATIENCE_SECONDS)
        with acting_as(Tenant(VICTIM, "anna")):
            try:
                add(number)
            except Invalid:
                return False
            return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(added, range(AT_ONCE))) == MOST


def test_simultaneous_links_of_a_first_admin_replace_each_other() -> None:
    together = Barrier(AT_ONCE)

    def renewed(_: int) -> str:
        together.wait(PATIENCE_SECONDS)
        return invitations.renew(VICTIM)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert len(set(pool.map(renewed, range(AT_ONCE)))) == AT_ONCE
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(InvitationRow)) == 1


@pytest.mark.parametrize(
    "lose", [operators.remove, lambda login: operators.change(login, role="operator")], ids=["remove", "demote"]
)
def test_two_admins_who_oust_each_other_leave_one(lose: Callable[[str], object]) -> None:
    admins = {f"{name}-{uuid4().hex[:8]}" for name in ("anna", "boris")}
    for login in admins:
        operators.add(login, "river of snow 42", role="admin")
    together = Barrier(2)

    def ousted(login: str) -> bool:
        together.wait(PATIENCE_SECONDS)
        (caller,) = admins - {login}
        with acting_as(Tenant(VICTIM, caller)):
            try:
                lose(login)
            except Invalid:
                return False
            return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ousted, admins)) == [False, True]
    for one in operators.all():
        operators.remove(one.login, even_last=True)


def add_edge(session: TenantSession) -> None:
    session.add(EdgeRow(from_doc="a.md", kind="related", to_doc="b.md", weight=1.0, declared=False))
    session.flush()


def remove_gap(session: TenantSession) -> None:
    session.execute(delete(GapRow))


@pytest.mark.parametrize(
    ("first", "second", "refusal"),
    [
        (add_edge, lambda: document_edges.put(EDGE), TryAgain),
        (remove_gap, lambda: gaps.decide(["gap"], "dismissed"), NotFound),
    ],
)
def test_who_changes_the_same_second_is_told_so(
    first: Callable[[TenantSession], None], second: Callable[[], object], refusal: type[OporaError]
) -> None:
    with database.writing() as session:
        session.execute(delete(EdgeRow))
        for doc_id in ("a.md", "b.md"):
            session.merge(row(DocumentRow, tenant_id=VICTIM, doc_id=doc_id))
        session.merge(row(GapRow, tenant_id=VICTIM, gap_id="gap"))
    with ThreadPoolExecutor(1) as pool:
        with database.writing() as session:
            first(session)
            later = pool.submit(copy_context().run, second)
            deadline = monotonic() + PATIENCE_SECONDS
            while not session.scalar(BLOCKED):
                assert monotonic() < deadline
                Event().wait(0.02)
        with pytest.raises(refusal):
            later.result()


def test_a_token_id_with_a_null_byte_spoils_nobodys_request() -> None:
    token_uses.note(Tenant(VICTIM, "anna", token_id=token_id("token", "a\0b")))
    token_uses.write()
