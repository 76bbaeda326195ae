"""The pages of unanswered questions: selected rows are closed, dismissed, or become an article."""

from collections.abc import Iterator

import httpx
import pytest

from tests import desk
from tests.desk import Browser
from tests.service.serving import Server
from tests.webhooks import wait_until

WATER, ENGRAVING = "Сколько воды расходует модель Тайфун?", "Можно ли заказать гравировку на крышке?"


@pytest.fixture
def editor(server: Server) -> Iterator[Browser]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield Browser(client, desk.secret_of(desk.staff("acme", {"Эдик": "editor"})["Эдик"]))


@pytest.fixture
def asked(acme: httpx.Client, editor: Browser) -> None:
    for question in (WATER, ENGRAVING):
        acme.post("/ask/run", json={"question": question})
    wait_until(lambda: {WATER, ENGRAVING} <= set(rows(editor)))


def rows(editor: Browser, status: str = "open") -> dict[str, str]:
    """Return the ids of the gaps on all pages, by question."""
    found: dict[str, str] = {}
    number = 1
    while gaps := editor.page("/desk/gaps", status=status, page=str(number)).cssselect(".gap"):
        for row in gaps:
            found[row.cssselect("h2")[0].text_content()] = row.cssselect("input[type=checkbox]")[0].get("value")
        number += 1
    return found


def test_selected_gaps_close_only_if_they_are_answered(editor: Browser, acme: httpx.Client, asked: None) -> None:
    chosen = [rows(editor)[question] for question in (WATER, ENGRAVING)]
    text = "# Расход воды\n\nМодель «Тайфун» расходует 45 литров воды за стирку.\n"
    assert acme.post("/ingest/run", json={"documents": [{"doc_id": "тайфун.md", "title": "Тайфун", "text": text}]})
    form = {"status": "closed", "gap": ",".join(chosen), "back": "/desk/gaps?status=open"}
    back = editor.post("/desk/gaps/decide", form)
    assert back.headers["location"] == "/desk/gaps?status=open&closed=1&unanswered=1"
    shown = editor.page(back.headers["location"])
    [said] = shown.cssselect("[role=status]")
    assert "Остались открытыми: 1" in said.text_content()
    assert (ENGRAVING in rows(editor), WATER in rows(editor), WATER in rows(editor, "closed")) == (True, False, True)
    assert acme.delete("/documents/тайфун.md").is_success


def test_a_question_within_filters_is_no_gap(editor: Browser, acme: httpx.Client, asked: None) -> None:
    within, anywhere = "Есть ли у чайника «Бриз» подсветка?", "Есть ли у чайника «Бриз» свисток?"
    acme.post("/ask/run", json={"question": within, "filters": {"tags": ["пылесосы"]}})
    acme.post("/ask/run", json={"question": anywhere})
    wait_until(lambda: anywhere in rows(editor))
    assert within not in rows(editor)


def test_selected_gaps_begin_an_article_or_are_added_to_one(editor: Browser, asked: None) -> None:
    chosen = {question: rows(editor)[question] for question in (ENGRAVING,)}
    begun = editor.post("/desk/gaps/assign", {"gap": chosen[ENGRAVING], "article": ""})
    page = editor.page(begun.headers["location"])
    assert ENGRAVING in page.cssselect(".asked-for")[0].text_content()
    written = editor.post("/desk/articles/new", {"title": "Гравировка", "text": "Нет."})
    article_id = written.headers["location"].split("/")[-1].split("?")[0]
    added = editor.post("/desk/gaps/assign", {"gap": chosen[ENGRAVING], "article": article_id})
    assert added.headers["location"] == f"/desk/articles/{article_id}"
    assert ENGRAVING in editor.page(added.headers["location"]).cssselect(".asked-for")[0].text_content()


def test_selected_gaps_are_dismissed(editor: Browser, asked: None) -> None:
    dismissed = editor.post("/desk/gaps/decide", {"status": "dismissed", "gap": rows(editor)[ENGRAVING]})
    assert dismissed.status_code == 303
    assert (ENGRAVING in rows(editor), ENGRAVING in rows(editor, "dismissed")) == (False, True)
    editor.post("/desk/gaps/decide", {"status": "open", "gap": rows(editor, "dismissed")[ENGRAVING]})
    assert editor.post("/desk/gaps/decide", {"status": "open"}).status_code == 422
