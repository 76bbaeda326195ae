"""What a page of the desk costs: queries, whatever the number of chats and messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import Engine, event

import app
from pipelines import pages
from settings import Settings
from tenants import database
from tests import desk

MOST = 12
SETTINGS = [
    f"/desk/settings{path}"
    for path in ("", "/hours", "/offers", "/synonyms", "/sites", "/sites/site-of-acme", "/changes")
]


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
        *SETTINGS,
        "/desk/audit?q=вопрос&outcome=refused&since=2026-01-01&person=anna",
    ],
)
async def test_a_page_runs_few_queries_however_many_chats_there_are(installation: Settings, path: str) -> None:
    staff = desk.staff("acme", {"Анна": "admin", "Борис": "operator"})
    chats = [desk.waiting("acme", desk.asked("acme", f"v:{number}", "Где заказ?", "Ау")) for number in range(60)]
    cookie = {"Cookie": f"{pages.COOKIE}={desk.secret_of(staff['Анна'])}"}
    transport = httpx.ASGITransport(app.create_app(installation))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
        named = path.format(chat_id=chats[-1].chat_id)
        assert (await client.get(named, headers=cookie)).status_code == 200
        with counted(database.engine(installation)) as statements:
            assert (await client.get(named, headers=cookie)).status_code == 200
    run = [one for one in statements if not one.startswith(("BEGIN", "PRAGMA"))]
    assert 0 < len(run) <= MOST, "\n".join(run)
