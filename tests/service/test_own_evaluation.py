"""A tenant's own evaluation at the desk: from nothing to the first point on the plot, and a drop that is announced."""

from collections.abc import Callable, Iterator
from threading import Event
from time import monotonic
from typing import Any

import httpx
import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tests import desk
from tests.desk import Browser
from tests.service.serving import ARTICLES, Server, in_force
from tests.webhooks import wait_until

TENANT = "evaluated"
SHEET = """вопрос;ответ;статья;отказ
Что значит код E20?;вода не сливается;;
Что означает E20 на стиральной машине?;вода не сливается;;
Машина показывает ошибку E20;вода не сливается;;
ошибка e20 что делать;фильтр;;
Что значит код E10?;вода не поступает;;
Что означает E10 на стиральной машине?;вода не поступает;;
Машина показывает ошибку E10;кран;;
Сколько дней на возврат товара?;14 дней;Возврат товара;
Какой высоты Эльбрус?;;;да
Когда вы открыты?;;;
"""


@pytest.fixture(scope="module")
def editor(server: Server, installation: Settings, ingest: Callable[..., httpx.Response]) -> Iterator[Browser]:
    with in_force(installation), httpx.Client(base_url=server.url, timeout=60) as client:
        Registry().add(TENANT, name="Пристань", locale="ru")
        ingest(TENANT, ARTICLES).raise_for_status()
        yield Browser(client, desk.secret_of(desk.staff(TENANT, {"Анна": "admin"})["Анна"]))


def run(editor: Browser) -> str:
    """Start a run at the desk and return the page once it has ended."""
    assert editor.post("/desk/evaluation/start", {}).status_code == 303
    until = monotonic() + 60
    while "data-polls" in (page := editor.get("/desk/evaluation").text) and monotonic() < until:
        Event().wait(0.1)
    return page


def test_a_newcomer_reaches_the_first_point_and_learns_of_a_drop(editor: Browser, token: Callable[..., str]) -> None:
    assert "Вопросов пока нет" in editor.get("/desk/evaluation").text
    assert "Сначала добавьте хотя бы один вопрос" in editor.post("/desk/evaluation/start", {}).text
    uploaded = editor.post("/desk/evaluation/questions/file", {}, {"file": ("вопросы.csv", SHEET.encode())}).text
    assert "Добавлено: 9" in uploaded
    assert "Строка 11 «Когда вы открыты?»: Укажите, что должно быть в ответе" in uploaded
    ambiguous = editor.post("/desk/evaluation/questions", {"question": "Где вы?", "refused": "true", "facts": "Тут"})
    assert (ambiguous.status_code, "Где вы?" in ambiguous.text) == (422, True)

    page = run(editor)
    assert "Не прошли: 0" in page
    assert 'class="autonomous"' in page  # the first point
    headers = {"Authorization": f"Bearer {token(TENANT, 'ingest', 'operate', 'admin')}"}
    for path, nothing in (("/gaps", {"groups": []}), ("/audit", {"records": [], "next": None})):
        assert editor.client.get(path, headers=headers).json() == nothing
    assert 'class="row"' not in editor.get("/desk?view=all").text

    editor.client.delete("/documents/errors.md", headers=headers).raise_for_status()
    page = run(editor)
    assert "Качество ответов снизилось" in page
    assert "Стало хуже: 7" in page
    assert "Качество ответов снизилось" in editor.get("/desk").text
    assert editor.post("/desk/evaluation/seen", {}).status_code == 303
    assert "Качество ответов снизилось" not in editor.get("/desk").text

    newest, first = editor.client.get("/evaluation/results", headers=headers).json()["results"]
    assert (first["loss"], newest["loss"]["right"]["worse"]) == (None, 7)
    shown = editor.client.get(f"/evaluation/results/{newest['run_id']}", headers=headers).json()
    assert {one["mark"] for one in shown["failing"]} <= {"missed", "wrong"}
    assert len(shown["worse"]) == 7


def test_the_hour_is_set_at_the_desk(editor: Browser) -> None:
    for hour, words in (("5", "Прогон каждый день в 05:00 (UTC)"), ("", "Ночной прогон выключен")):
        assert editor.post("/desk/evaluation/hour", {"hour": hour}).status_code == 303
        assert words in editor.get("/desk/evaluation").text
    assert editor.post("/desk/evaluation/hour", {"hour": "77"}).status_code == 422


def test_a_model_adds_its_scores_and_its_cost(
    server: Server, token: Callable[..., str], ingest: Callable[..., httpx.Response]
) -> None:
    ingest("written", ARTICLES).raise_for_status()
    headers = {"Authorization": f"Bearer {token('written', 'ingest')}"}
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        asked = {"question": "Что значит код E20?", "facts": ["сливается"]}
        client.post("/evaluation/questions", json={"questions": [asked]}).raise_for_status()
        client.post("/evaluation/results").raise_for_status()

        def newest() -> dict[str, Any]:
            return next(iter(client.get("/evaluation/results").json()["results"]), {})

        wait_until(lambda: newest().get("state") == "done")
        figures = newest()["figures"]
        shown = client.get(f"/evaluation/results/{newest()['run_id']}").json()
    assert figures["axes"].keys() == {"quality", "relevance", "factuality"}, shown
    assert all(0 < score <= 1 for score in figures["axes"].values())
    assert figures["tokens"] > 0
