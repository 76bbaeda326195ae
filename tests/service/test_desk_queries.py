"""Number of queries of a desk page, independent of the number of chats and messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from sqlalchemy import Engine, event

import app
from components.ingest.document import SourceDocument
from evaluation.simulator.server import Simulator
from pipelines import desk_gate
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.desk import operators
from tenants.storage import database
from tenants.work import locks
from tests import desk, desk_shop, desk_views
from tests.service.serving import in_force
from tests.service.stored import prepared

MOST = 12


@pytest.fixture(scope="module")
def prepared_apart(
    tmp_path_factory: pytest.TempPathFactory, provider_key: RSAPrivateKey, simulated_models: tuple[Simulator, str]
) -> Settings:
    return prepared(tmp_path_factory.mktemp("queries"), provider_key, simulated_models[1])


@pytest.fixture
def apart(prepared_apart: Settings) -> Iterator[Settings]:
    """A separate installation: an index belongs to one process, and the service of the other tests has theirs."""
    with in_force(prepared_apart):
        yield prepared_apart
    index.close_all()
    locks.close_all()


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """Collect the statements executed in the block."""
    statements: list[str] = []

    def record(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", record)


def ingest(tenant_id: str, shelf: list[dict[str, Json]]) -> None:
    """Ingest documents, as the service would."""
    given = [SourceDocument(str(one["doc_id"]), str(one["title"]), str(one["text"]), meta=one) for one in shelf]
    with acting_as(Tenant(tenant_id, "admin")):
        Ingest().run(given)


async def test_a_page_runs_few_queries_however_much_there_is(apart: Settings) -> None:
    stored = desk_shop.fill(apart, ingest)
    ingest(
        desk_shop.TENANT, [{"doc_id": f"a/{at}", "title": f"Статья {at}", "text": f"Полка {at}."} for at in range(70)]
    )
    for number in range(60):
        desk.waiting(desk_shop.TENANT, desk.asked(desk_shop.TENANT, f"v:{number}", "Где заказ?", "Ау"))
    admin, root = desk_shop.operator(), desk.root()
    transport = httpx.ASGITransport(app.create_app(apart))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
        for name in desk_views.names():
            address = desk_views.address(name.partition("#")[0], stored)
            who = root if name in desk_views.OF_INSTALLATION else admin
            cookie = {"Cookie": f"{desk_gate.COOKIE}={desk.secret_of(who)}"}
            assert (await client.get(address, headers=cookie)).status_code == 200, address
            with counted(database.engine(apart)) as statements:
                assert (await client.get(address, headers=cookie)).status_code == 200
            run = [one for one in statements if not one.startswith(("BEGIN", "PRAGMA"))]
            assert len(run) <= MOST, "\n".join((address, *run))


async def test_an_unchanged_inbox_is_not_sent_again(apart: Settings) -> None:
    Registry().add("news")
    with acting_as(Tenant("news", "admin")):
        admin = operators.add("nadia", "снег идёт над рекой", role="admin")
    cookie = {"Cookie": f"{desk_gate.COOKIE}={desk.secret_of(admin)}"}
    transport = httpx.ASGITransport(app.create_app(apart))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora", headers=cookie) as client:
        known = {"If-None-Match": (await client.get("/desk")).headers["etag"]}
        again = await client.get("/desk", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        desk.waiting("news", desk.asked("news", "v:1", "Где заказ?", "Ау"))
        assert (await client.get("/desk", headers=known)).status_code == 200
