"""The pages of figures and of the audit: what they show, find and hand out."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from lxml import html
from sqlalchemy import update
from sqlalchemy.orm import Session

from pipelines import pages
from settings import Settings
from tenants import database, persons
from tenants.audit import store
from tenants.audit.entry import Entry, canonical
from tenants.desk import sessions
from tenants.models import AuditRow
from tests import desk
from tests.service.serving import Server, recorded

FORMULA = "=cmd|' /C calc'!A0"


def entry(name: str, question: str, answer: str = "!", *, outcome: str = "answered", subject: str = "") -> Entry:
    """A recorded turn of acme's."""
    body = {"answer": {"answer": {"text": answer}, "citations": []}, "found": [], "request": {"question": question}}
    person = persons.digest("acme", subject) if subject else ""
    whole = replace(recorded("acme"), turn_id=name, outcome=outcome, reason=None, person=person, misses=())
    return replace(whole, body=canonical(body), at=datetime.now(UTC) - timedelta(days=3))


@pytest.fixture(scope="module")
def records(installation: Settings) -> None:
    entries = [entry(f"audit-{number}", f"Как вернуть насос номер {number}?") for number in range(60)]
    entries += [
        entry("audit-clarify", "Ёлка и гирлянда?", outcome="clarify"),
        entry("audit-pyotr", "Где мой заказ с ёлкой?", subject="pyotr"),
        entry("audit-formula", FORMULA, "-1+2"),
    ]
    store.append(entries, installation)


@pytest.fixture
def get(server: Server, installation: Settings, records: None) -> Iterator[Callable[..., httpx.Response]]:
    staff = desk.staff("acme", {"Анна": "admin", "Борис": "operator"})
    cookies = {name: f"{pages.COOKIE}={desk.secret_of(one)}" for name, one in staff.items()}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield lambda path, who="Анна": client.get(path, headers={"Cookie": cookies[who]})


def _set_outcome(session: Session, turn_id: str, outcome: str) -> None:
    session.execute(update(AuditRow).where(AuditRow.turn_id == turn_id).values(outcome=outcome))


def found(response: httpx.Response) -> list[str]:
    """The questions in the list."""
    assert response.status_code == 200, response.text
    links = html.fromstring(response.text).iterfind(".//ul[@class='records card']//a")
    return ["".join(str(piece) for piece in link.itertext()) for link in links]


def links(page: str) -> list[str]:
    """Where its links lead to."""
    return [str(link.get("href")) for link in html.fromstring(page).iter("a")]


def test_the_audit_is_searched_by_words_outcome_person_and_time(get: Callable[..., httpx.Response]) -> None:
    assert found(get("/desk/audit?q=елка")) == ["Ёлка и гирлянда?"]
    assert found(get("/desk/audit?q=ёлк")) == ["Где мой заказ с ёлкой?", "Ёлка и гирлянда?"]
    assert found(get("/desk/audit?outcome=clarify&q=ёлк")) == ["Ёлка и гирлянда?"]
    assert found(get("/desk/audit?person=pyotr")) == ["Где мой заказ с ёлкой?"]
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    assert found(get(f"/desk/audit?q=ёлк&since={day}&until={day}")) == ["Где мой заказ с ёлкой?", "Ёлка и гирлянда?"]
    assert found(get("/desk/audit?q=ёлк&until=2026-01-01")) == []
    assert "Ничего не подошло" in get("/desk/audit?q=ёлк&until=2026-01-01").text


def test_pages_of_the_audit_hold_every_turn_once(get: Callable[..., httpx.Response]) -> None:
    path, questions = "/desk/audit?q=насос", list[str]()
    while path:
        page = get(path)
        questions += found(page)
        path = next((link for link in links(page.text) if "before=" in link), "")
    assert questions == [f"Как вернуть насос номер {number}?" for number in reversed(range(60))]


@pytest.mark.parametrize("day", ["gestern", "2026-13-01", "0001-01-01", "9999-12-31"])
def test_a_day_that_is_none_is_refused_in_words(get: Callable[..., httpx.Response], day: str) -> None:
    for path in (f"/desk/audit?since={day}", f"/desk/insight?since={day}&until={day}"):
        page = get(path)
        assert page.status_code == 422
        assert "Первый день не может быть позже последнего" in page.text


def test_a_chain_that_was_changed_is_shown_with_the_place(
    get: Callable[..., httpx.Response], server: Server, installation: Settings
) -> None:
    anna = desk.staff("acme", {"Анна": "admin"})["Анна"]
    secret = desk.secret_of(anna)

    def verify() -> str:
        headers = {"Cookie": f"{pages.COOKIE}={secret}", **desk.SAME_ORIGIN}
        form = {"csrf": sessions.verify(secret).csrf}
        page = httpx.post(f"{server.url}/desk/audit/verify", data=form, headers=headers, timeout=60)
        assert page.status_code == 200
        return page.text

    assert "Журнал цел" in verify()
    with database.writing(installation) as session:
        _set_outcome(session, "audit-7", "refused")
    try:
        broken = verify()
        assert "Журнал изменён" in broken
        assert "/desk/turns/audit-7" in broken
    finally:
        with database.writing(installation) as session:
            _set_outcome(session, "audit-7", "answered")
    assert "Журнал цел" in verify()


def test_a_table_of_the_audit_runs_nothing_in_a_spreadsheet(get: Callable[..., httpx.Response]) -> None:
    exported = get("/audit/export?format=csv")
    assert exported.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert exported.headers["Content-Type"].startswith("text/csv")
    rows = {row["turn_id"]: row for row in csv.DictReader(io.StringIO(exported.text.removeprefix("\ufeff")))}
    assert (rows["audit-formula"]["question"], rows["audit-formula"]["answer"]) == (f"'{FORMULA}", "'-1+2")
    assert rows["audit-3"]["question"] == "Как вернуть насос номер 3?"
    assert get("/audit/export?format=csv", "Борис").status_code == 403
    assert get("/insight/chats?format=csv", "Борис").status_code == 403


def test_figures_are_those_of_the_interface(get: Callable[..., httpx.Response]) -> None:
    asked = desk.asked("acme", "v:figures", "Сколько стоит доставка?")
    desk.answered("acme", asked, "490 ₽ [1].")
    figures = get("/insight?days=7").json()
    page = get("/desk/insight?days=7").text
    assert f"Чатов: {figures['chats']['autonomous']}" in page
    assert f"Продолжаются: {figures['chats']['open']}." in page
    assert figures["chats"]["total"] == sum(day["total"] for day in figures["chats"]["by_day"].values()) > 0
    assert sum(link.startswith("/insight/chats") for link in links(page)) == 2
    assert not any(link.startswith("/insight/chats") for link in links(get("/desk/insight", "Борис").text))
    assert "v:figures" not in get("/insight/chats").text
