"""Pages of statistics and of the audit: display, search and downloads."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from lxml import html
from sqlalchemy import update
from sqlalchemy.orm import Session

from evaluation.datasets.thumbs import graded_thumbs
from pipelines import desk_gate
from settings import Settings
from tenants.audit import store
from tenants.audit.entry import Entry, canonical
from tenants.core.context import Tenant, acting_as
from tenants.desk import feedback, operator_sessions
from tenants.privacy import persons
from tenants.storage import database
from tenants.storage.audit_tables import AuditRow
from tests import desk
from tests.browser.turns import turn
from tests.desk import Browser
from tests.service.serving import ARTICLES, Server
from tests.service.stored import recorded
from tests.webhooks import wait_until

FORMULA = "=cmd|' /C calc'!A0"


def entry(name: str, question: str, answer: str = "!", *, outcome: str = "answered", subject: str = "") -> Entry:
    """Return a recorded turn of acme."""
    body = {"answer": {"answer": {"text": answer}, "citations": []}, "found": [], "request": {"question": question}}
    person = persons.digest("acme", subject) if subject else ""
    base = replace(recorded("acme"), turn_id=name, outcome=outcome, reason=None, person=person, misses=())
    return replace(base, body=canonical(body), at=datetime.now(UTC) - timedelta(days=3))


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
    cookies = {name: f"{desk_gate.COOKIE}={desk.secret_of(one)}" for name, one in staff.items()}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield lambda path, who="Анна": client.get(path, headers={"Cookie": cookies[who]})


def _set_outcome(session: Session, turn_id: str, outcome: str) -> None:
    session.execute(update(AuditRow).where(AuditRow.turn_id == turn_id).values(outcome=outcome))


def asked(response: httpx.Response) -> list[str]:
    """Return the questions in the list."""
    assert response.status_code == 200, response.text
    links = html.fromstring(response.text).iterfind(".//ul[@class='records card']//a")
    return ["".join(str(piece) for piece in link.itertext()) for link in links]


def links(page: str) -> list[str]:
    """Return the targets of the page's links."""
    return [str(link.get("href")) for link in html.fromstring(page).iter("a")]


def test_the_audit_is_searched_by_words_outcome_person_and_time(get: Callable[..., httpx.Response]) -> None:
    assert asked(get("/desk/audit?q=елка")) == ["Ёлка и гирлянда?"]
    assert asked(get("/desk/audit?q=ёлк")) == ["Где мой заказ с ёлкой?", "Ёлка и гирлянда?"]
    assert asked(get("/desk/audit?outcome=clarify&q=ёлк")) == ["Ёлка и гирлянда?"]
    assert asked(get("/desk/audit?person=pyotr")) == ["Где мой заказ с ёлкой?"]
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    assert asked(get(f"/desk/audit?q=ёлк&since={day}&until={day}")) == ["Где мой заказ с ёлкой?", "Ёлка и гирлянда?"]
    assert asked(get("/desk/audit?q=ёлк&until=2026-01-01")) == []
    assert "Ничего не подошло" in get("/desk/audit?q=ёлк&until=2026-01-01").text


def test_pages_of_the_audit_hold_every_turn_once(get: Callable[..., httpx.Response]) -> None:
    path, questions = "/desk/audit?q=насос", list[str]()
    while path:
        page = get(path)
        # Other tests ask this tenant too.
        questions += [one for one in asked(page) if one.startswith("Как вернуть насос")]
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
        headers = {"Cookie": f"{desk_gate.COOKIE}={secret}", **desk.SAME_ORIGIN}
        form = {"csrf": operator_sessions.verify(secret).csrf}
        page = httpx.post(f"{server.url}/desk/audit/verify", data=form, headers=headers, timeout=60)
        assert page.status_code == 200
        return page.text

    assert "Журнал цел" in verify()
    with database.across_tenants(installation, write=True) as session:
        _set_outcome(session, "audit-7", "refused")
    try:
        broken = verify()
        assert "Журнал изменён" in broken
        assert "/desk/turns/audit-7" in broken
    finally:
        with database.across_tenants(installation, write=True) as session:
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


@pytest.fixture
def post(server: Server, records: None) -> Iterator[Callable[[str, dict[str, str]], httpx.Response]]:
    secret = desk.secret_of(desk.staff("acme", {"Анна": "admin"})["Анна"])
    headers = {"Cookie": f"{desk_gate.COOKIE}={secret}", **desk.SAME_ORIGIN}
    csrf = operator_sessions.verify(secret).csrf
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        yield lambda path, form: client.post(path, data={"csrf": csrf, **form})


@pytest.fixture
def articles(ingest: Callable[..., httpx.Response]) -> None:
    assert ingest("acme", ARTICLES).is_success


def test_turn_page_shows_scores_and_model_calls(
    server: Server, ingest: Callable[..., httpx.Response], token: Callable[..., str]
) -> None:
    assert ingest("written", ARTICLES).is_success
    staff = desk.staff("written", {"Анна": "admin"})["Анна"]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        headers = {"Authorization": f"Bearer {token('written', 'ask')}"}
        asked = client.post("/ask/run", json={"question": "Что означает код E20?"}, headers=headers).json()
        page, path = Browser(client, desk.secret_of(staff)), f"/desk/turns/{asked['turn_id']}"
        wait_until(lambda: page.get(path).status_code == 200)
        shown = page.get(path).text
    assert asked["meta"]["llm_calls"] > 0
    assert shown.count("SHA-256") >= asked["meta"]["llm_calls"]
    assert asked["meta"]["model"] in shown
    assert "Текст промпта не хранится" in shown
    table = html.fromstring(shown).xpath("//div[@aria-label='Все найденные фрагменты и их оценки']//tbody/tr")
    assert isinstance(table, list)
    assert len(table) == asked["meta"]["chunks"]["retrieved"]
    passes = html.fromstring(shown).xpath("//div[@aria-label='Проходы поиска']//tbody/tr")
    assert isinstance(passes, list)
    assert len(passes) == len(asked["meta"]["iterations"]) == 1


def asked_and_shown(
    server: Server, ingest: Callable[..., httpx.Response], token: Callable[..., str], question: str
) -> tuple[Any, html.HtmlElement]:
    """Ask a question; return the answer, and the page that says why it was given."""
    assert ingest("acme", ARTICLES).is_success
    staff = desk.staff("acme", {"Анна": "admin"})["Анна"]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        headers = {"Authorization": f"Bearer {token('acme', 'ask')}"}
        asked = client.post("/ask/run", json={"question": question}, headers=headers).json()
        page, path = Browser(client, desk.secret_of(staff)), f"/desk/turns/{asked['turn_id']}"
        wait_until(lambda: page.get(path).status_code == 200)
        return asked, page.page(path)


def test_why_a_question_was_refused_is_said_in_words(
    server: Server, ingest: Callable[..., httpx.Response], token: Callable[..., str]
) -> None:
    asked, shown = asked_and_shown(server, ingest, token, "Что означает код E66?")
    facts = {str(one.findtext("dt")): str(one.findtext("dd")) for one in shown.iterfind(".//dl[@class='facts']/div")}
    assert asked["verdict"]["reasons"] == ["code_not_found"]
    assert facts["Решение"] == "сам не отвечает: такого кода нет ни в одном документе"
    assert facts["Понято как"] == "вопрос к базе знаний"
    assert "Модель" not in facts


def test_a_reason_that_the_outcome_says_is_not_repeated(
    server: Server, ingest: Callable[..., httpx.Response], token: Callable[..., str]
) -> None:
    asked, shown = asked_and_shown(server, ingest, token, "Отмените мой заказ и верните деньги немедленно!")
    assert asked["outcome"] == "high_stakes"
    assert shown.find(".//section[@class='card']/p/span[@class='why']") is None


def test_the_playground_compares_two_settings_and_leaves_no_trace(
    get: Callable[..., httpx.Response], post: Callable[[str, dict[str, str]], httpx.Response], articles: None
) -> None:
    before = get("/insight?days=1").json()["turns"]["total"], len(get("/audit/export").text)
    question = "Что означает код E20?"
    page = post("/desk/playground", {"question": question, "both": "1", "a_enough": "0", "b_enough": "1"})
    assert page.status_code == 200, page.text
    assert page.text.count('id="answer-') == 2
    assert "Отличается:" in page.text
    assert "модель не вызывали" in page.text
    assert "Шаги пайплайна" in page.text
    same = post("/desk/playground", {"question": question, "both": "1"})
    assert "Не отличается от настройки А." in same.text
    assert (get("/insight?days=1").json()["turns"]["total"], len(get("/audit/export").text)) == before


def test_the_playground_goes_on_and_branches_off_an_earlier_turn(
    post: Callable[[str, dict[str, str]], httpx.Response], articles: None
) -> None:
    def history(page: str) -> str:
        fields = html.fromstring(page).iterfind(".//input[@name='history']")
        return next(str(field.get("value")) for field in fields)

    first = post("/desk/playground", {"question": "Что означает код E20?"}).text
    second = post("/desk/playground", {"question": "А как открыть фильтр?", "history": history(first)}).text
    assert [one["question"] for one in json.loads(history(second))] == [
        "Что означает код E20?",
        "А как открыть фильтр?",
    ]
    branch = post("/desk/playground", {"back": "1", "history": history(second)}).text
    assert [one["question"] for one in json.loads(history(branch))] == ["Что означает код E20?"]
    assert ">А как открыть фильтр?</textarea>" in branch


def test_the_playground_goes_on_from_an_answer_of_a_chat(get: Callable[..., httpx.Response]) -> None:
    chat = desk.asked("acme", "v:1", "Что означает код E20?")
    chat = desk.answered("acme", chat, "Вода не сливается.")
    link = f"/desk/playground?chat={chat.chat_id}&after={chat.last_seq}"
    links = html.fromstring(get(f"/desk/chat/{chat.chat_id}").text).iterfind(".//li/p[@class='acts']/a")
    assert link in [one.get("href") for one in links]
    (history,) = html.fromstring(get(link).text).iterfind(".//input[@name='history']")
    assert [one["question"] for one in json.loads(str(history.get("value")))] == ["Что означает код E20?"]
    assert get("/desk/playground?chat=foreign&after=1").status_code == 404


@pytest.mark.parametrize(
    "form",
    [
        {"question": ""},
        {"question": "x" * 100_000},
        {"question": "?", "a_enough": "2"},
        {"question": "?", "a_graded": "nan"},
        {"question": "?", "a_quality": "best"},
        {"question": "?", "a_profile": "no-such"},
        {"question": "?", "history": "[{}]"},
        {"question": "?", "history": "nonsense"},
    ],
)
def test_what_the_playground_cannot_ask_is_refused_in_words(
    post: Callable[[str, dict[str, str]], httpx.Response], form: dict[str, str]
) -> None:
    page = post("/desk/playground", form)
    assert page.status_code == 422, page.text
    assert 'role="alert"' in page.text


def test_the_playground_is_the_same_over_http(acme: httpx.Client, token: Callable[..., str], articles: None) -> None:
    headers = {"Authorization": f"Bearer {token('acme', 'ingest')}"}
    body = {"question": "Что означает код E20?", "trials": [{"enough": 0}, {"enough": 1}]}
    played = acme.post("/playground", json=body, headers=headers)
    assert played.status_code == 200, played.text
    first, second = played.json()["answers"]
    assert (first["differs_in"], first["turn"]["outcome"]) == ([], "answered")
    assert "outcome" in second["differs_in"]
    refused = acme.post("/playground", json={**body, "trials": [{"enough": 2}]}, headers=headers)
    assert refused.status_code == 422


def test_an_editors_verdict_counts_and_the_answer_is_not_shown_again(
    get: Callable[..., httpx.Response],
    post: Callable[[str, dict[str, str]], httpx.Response],
    installation: Settings,
) -> None:
    read = turn("answered", "Очистите фильтр [1].")
    base = entry("read-me", "Как очистить фильтр?", subject="v:reader")
    body = canonical({"answer": read, "found": [], "request": {"question": "Как очистить фильтр?"}})
    store.append([replace(base, body=body, at=datetime.now(UTC))], installation)
    page = get("/desk/reading").text
    assert "Как очистить фильтр?" in page
    assert post("/desk/reading/judge", {"turn_id": "read-me", "verdict": "partly"}).status_code == 303
    assert "Как очистить фильтр?" not in get("/desk/reading").text
    with acting_as(Tenant("acme", "anna")):
        verdict = next(one for one in feedback.latest() if one.turn_id == "read-me")
        graded = graded_thumbs()
    assert (verdict.thumb, verdict.reason) == ("down", "incomplete")
    assert [one.right for one in graded].count(False) >= 1
    assert post("/desk/reading/judge", {"turn_id": "no-such", "verdict": "right"}).status_code == 404
    assert post("/desk/reading/judge", {"turn_id": "read-me", "verdict": "great"}).status_code == 422


def test_a_run_of_the_evaluation_is_shown_with_its_curve(get: Callable[..., httpx.Response]) -> None:
    assert "opora evaluate answers --key key.jsonl --tenant acme" in get("/desk/evaluation/measured").text
    desk.evaluated("acme")
    page = get("/desk/evaluation/measured").text
    for shown in ("0123456789ab", "shop-key", "≥ 0.68: достигнута", "Верный ответ или нужная статья", "<polyline"):
        assert shown in page
    assert [one["run_id"] for one in get("/evaluation/runs").json()["runs"]] == ["run-2", "run-1"]
    chosen = html.fromstring(get("/desk/evaluation/measured?run=run-1").text)
    assert chosen.xpath("//table//a[@aria-current]/@href") == ["/desk/evaluation/measured?run=run-1"]
    unknown = get("/desk/evaluation/measured?run=elsewhere")
    assert unknown.status_code == 404
    assert "Такого прогона нет" in unknown.text
    assert get("/desk/evaluation/measured", "Борис").status_code == 403
