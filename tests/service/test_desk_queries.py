"""What a page of the desk costs: queries, whatever the number of chats and messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from sqlalchemy import Engine, event

import app
from components.ingest.document import SourceDocument
from evaluation.simulator.server import Simulator
from pipelines import pages
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import database, index
from tenants.context import Tenant, acting_as
from tenants.desk.operators import Operator
from tenants.registry import Registry
from tests import desk, desk_gaps
from tests.installations import installed
from tests.service.serving import in_force
from tests.service.stored import prepared

MOST = 12
SETTINGS = [
    f"/desk/settings{path}"
    for path in (
        "",
        "/hours",
        "/offers",
        "/synonyms",
        "/sites",
        "/sites/site-of-acme",
        "/tools",
        "/tools/orders-of-acme",
        "/webhooks",
        "/tokens",
        "/models",
        "/changes",
    )
]


@pytest.fixture(scope="module")
def prepared_apart(
    tmp_path_factory: pytest.TempPathFactory, provider_key: RSAPrivateKey, simulated_models: tuple[Simulator, str]
) -> Settings:
    return prepared(tmp_path_factory.mktemp("queries"), provider_key, simulated_models[1])


@pytest.fixture
def apart(prepared_apart: Settings) -> Iterator[Settings]:
    """An installation of its own: an index belongs to one process, and the other tests' service has theirs."""
    with in_force(prepared_apart):
        yield prepared_apart
    index.close_all()


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are run in the block."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    "path",
    [
        "/desk",
        "/desk?view=all&q=заказ",
        "/desk/chat/{chat_id}",
        "/desk/replies",
        "/desk/people",
        "/desk/insight",
        "/desk/evaluation",
        *SETTINGS,
        *desk_gaps.paths(),
        "/desk/reading",
        "/desk/playground",
        "/desk/audit?q=вопрос&outcome=refused&since=2026-01-01&person=anna",
    ],
)
async def test_a_page_runs_few_queries_however_many_chats_there_are(apart: Settings, path: str) -> None:
    staff = desk.staff("acme", {"Анна": "admin", "Борис": "operator"})
    chats = [desk.waiting("acme", desk.asked("acme", f"v:{number}", "Где заказ?", "Ау")) for number in range(60)]
    await _count(apart, staff["Анна"], path.format(chat_id=chats[-1].chat_id))


async def _count(settings: Settings, operator: Operator, path: str) -> None:
    cookie = {"Cookie": f"{pages.COOKIE}={desk.secret_of(operator)}"}
    transport = httpx.ASGITransport(app.create_app(settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
        assert (await client.get(path, headers=cookie)).status_code == 200
        with counted(database.engine(settings)) as statements:
            assert (await client.get(path, headers=cookie)).status_code == 200
    run = [one for one in statements if not one.startswith(("BEGIN", "PRAGMA"))]
    assert 0 < len(run) <= MOST, "\n".join(run)


@pytest.mark.parametrize("path", ["/desk/tenants", "/desk/tenants/one?id=acme"])
async def test_a_page_of_tenants_runs_few_queries(apart: Settings, path: str) -> None:
    await _count(apart, desk.root(), path)


PARTS = ("chunks", "properties", "versions&version=1", "ties")


@pytest.mark.parametrize(
    "path",
    [
        "/desk/documents?q=a",
        "/desk/documents?stale=true",
        *(f"/desk/documents/one?id=a/7&show={part}" for part in PARTS),
    ],
)
async def test_a_page_of_documents_runs_few_queries_however_many_there_are(tmp_path: Path, path: str) -> None:
    with installed(tmp_path) as settings:
        Registry().add("acme", locale="ru")
        staff = desk.staff("acme", {"Анна": "admin"})
        with acting_as(Tenant("acme", "admin")):
            Ingest().run([SourceDocument(f"a/{at}", f"Статья {at}", f"Полка {at}.", f"a/{at}") for at in range(70)])
        await _count(settings, staff["Анна"], path)
