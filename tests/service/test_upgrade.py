"""A data folder of an earlier version is served completely by this one; a newer one is refused.

The folder belongs to a service of version 0.1.0, after a kill: an upload waits, and the record
of the last answer is only in the spool. Its index is intact, so it is not rebuilt.
"""

import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import cli
from settings import Settings
from tenants.access.tokens import issue
from tenants.chats import tickets
from tenants.core.context import Tenant, acting_as
from tenants.desk import feedback
from tenants.knowledge import tools
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tenants.work import locks
from tests.service.serving import ALL_SCOPES, ROOT, Server, environment, in_force, serving
from tests.webhooks import wait_until

STORED = ROOT / "tests" / "contract" / "version_0_1_0.tar.xz"
MADE = datetime(2026, 11, 23, 7, 26, tzinfo=UTC)
PATIENCE_SECONDS = 60

E20, GUARANTEE = "Что значит код E20?", "Какая гарантия на холодильник?"
ANSWERS = {
    E20: "E20 [1]\n\nКод E20 означает, что вода не сливается. Очистите фильтр сливного насоса и проверьте шланг. [1]",
    "Сколько дней на возврат товара?": "Товар надлежащего качества можно вернуть в течение 14 дней после покупки. "
    "Сохраните чек. [1]",
}
"""As the earlier version gave them."""
ASKED, ERASED, SPOOLED = (
    "d5c50d5a-5b97-46ed-88cc-c80b0fe831d0",
    "c7cfd0ee-61f9-4d05-8faf-07eba37d66d2",
    "e18ab11b-8b0f-4abc-918d-614a22d8563d",
)
DONE, WAITING = "18ea9bdfeb5df004f00c8d8ba0b40fff", "18ea9be1e992c40023cbd10ce4733cc8"
TICKET, CHAT, SITE = "89YGV-W6GYE", "7c5b8dce755f95c6def3f215", "site_b4b587edc76156d5edb0bcf1"


def dated_today(file: Path) -> None:
    """Move all times forward, so that no row expires, except those of the audit, whose hashes include its times."""
    days = (datetime.now(UTC) - MADE).days
    with closing(sqlite3.connect(file)) as connection, connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                if kind == "DATETIME" and not table.startswith("audit"):
                    moved = f"strftime('%Y-%m-%d %H:%M:%f', {column}, '+{days} days')"
                    connection.execute(f"UPDATE {table} SET {column} = {moved}")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("upgraded")
    with tarfile.open(STORED) as stored:
        stored.extractall(folder, filter="data")
    dated_today(folder / "opora.db")
    return Settings(data_dir=folder, audit_days=36_500, rate_limit_per_minute=0, rate_limit_per_day=0)


@pytest.fixture(scope="module")
def server(installation: Settings) -> Iterator[Server]:
    with in_force(installation), serving(environment(installation)) as running:
        yield running
        locks.close_all()


@pytest.fixture
def client(server: Server, installation: Settings) -> Iterator[httpx.Client]:
    token = issue(installation, "acme", scopes=ALL_SCOPES, subject="anna", ttl_seconds=600)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, headers=headers) as client:
        yield client


def test_everything_is_there_and_what_was_under_way_goes_on(client: httpx.Client) -> None:
    assert client.get("/readyz").json() == {"status": "ready"}
    for question, text in ANSWERS.items():
        answer = client.post("/ask/run", json={"question": question}).json()
        # The earlier version put a section's number behind each of its paragraphs.
        assert (answer["outcome"], answer["answer"]["text"]) == ("answered", text.replace(" [1]\n", "\n"))
    wait_until(lambda: client.get(f"/jobs/{WAITING}").json()["state"] == "done")
    wait_until(lambda: client.get(f"/audit/{SPOOLED}").is_success)
    answer = client.post("/ask/run", json={"question": GUARANTEE}).json()
    assert (answer["outcome"], answer["citations"][0]["doc_id"]) == ("answered", "warranty.md")


def test_the_records_are_whole(client: httpx.Client) -> None:
    assert client.get("/audit/verify").json()["faults"] == []
    assert client.get(f"/audit/{ASKED}").json()["content"]["answer"]["answer"]["text"] == ANSWERS[E20]
    assert client.get(f"/audit/{ERASED}").json()["content"] is None
    assert GUARANTEE in client.get("/gaps", params={"status": "all"}).text
    assert client.get(f"/jobs/{DONE}").json()["report"]["added"] == 1
    assert client.get("/documents/returns.md").json()["priority"] == 2
    written = [one["text"] for one in client.get(f"/desk/chats/{CHAT}").json()["messages"]]
    assert (written[0], "вода не поступает" in written[1]) == ("Что значит код E10?", True)
    assert [site["key"] for site in client.get("/sites").json()["sites"]] == [SITE]
    with acting_as(Tenant("acme", "anna")):
        ticket = tickets.get(TICKET)
        assert ticket is not None
        assert ticket.question == "Позовите человека, мой заказ 42 не пришёл"
        assert [(verdict.turn_id, verdict.thumb) for verdict in feedback.latest()] == [(ASKED, "up")]
        assert len(persons.export(Person("anna", "s1"))["conversations"]) == 1
        assert not any(persons.export(Person(subject="boris")).values())
        assert tools.all()[0].secrets == {"authorization": "secret of acme"}


def test_a_repeated_request_gets_the_answer_of_before(client: httpx.Client) -> None:
    request = {"question": E20, "session_id": "s1"}
    repeated = client.post("/ask/run", json=request, headers={"Idempotency-Key": "key-code"})
    assert repeated.json()["turn_id"] == ASKED


def test_a_folder_that_a_newer_version_has_upgraded_is_refused(server: Server, installation: Settings) -> None:
    assert server.stop() == 0
    database.close_all()
    with closing(sqlite3.connect(installation.data_dir / "opora.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = CliRunner().invoke(cli.app, ["serve"])
    assert (refused.exit_code, "9999" in refused.stderr) == (2, True)
    with closing(sqlite3.connect(installation.data_dir / "opora.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)
