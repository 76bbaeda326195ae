"""The help centre over HTTP: what visitors can read, what stays hidden, and where links in answers lead."""

import json
from collections.abc import Callable
from urllib.parse import unquote

import httpx
import pytest
from playwright.sync_api import Browser, expect

from settings import Settings
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import votes
from tests.service.serving import Server, in_force

# Long enough for the splitter to keep the section apart.
STEPS = " ".join(f"Повторите {number} раза, если налёт остался, и слейте воду через носик." for number in range(2, 9))
ARTICLES: list[dict[str, object]] = [
    {
        "doc_id": "kettles/descaling.md",
        "title": "Накипь в чайнике",
        "text": "Чистите чайник раз в месяц.\n\n## Как убрать накипь\n\nВскипятите раствор лимонной кислоты <b>и</b> "
        f"промойте чайник. {STEPS}\n\n## Что нельзя\n\n| Средство | Почему |\n|---|---|\n| Сода | Царапает |\n{STEPS}",
        "tags": ["чайники"],
    },
    {"doc_id": "filters.md", "title": "Фильтр для чайника", "text": "Фильтр меняют раз в год.", "tags": ["чайники"]},
    {"doc_id": "old.md", "title": "Старый чайник", "text": "Накипь убирают уксусом.", "status": "archived"},
]


@pytest.fixture(scope="module")
def help_site(installation: Settings, ingest: Callable[..., httpx.Response]) -> str:
    with in_force(installation), acting_as(Tenant("empty", "admin")):
        sites.add("Чайники", [], key="help-site")
        sites.add("Без справки", [], SiteConfig(help_centre="off"), key="help-off")
        sites.add("Кабинет", [], identity_required=True, key="help-known")
        sites.add("В поиске", [], SiteConfig(help_centre="listed", locale="en"), key="help-listed")
    assert ingest("empty", ARTICLES).status_code == 200
    return "help-site"


def test_index_lists_published_articles_by_tag(anybody: httpx.Client, help_site: str) -> None:
    page = anybody.get(f"/help/{help_site}")
    assert page.status_code == 200
    assert page.headers["x-robots-tag"] == "noindex"
    assert "Накипь в чайнике" in page.text
    assert "Фильтр для чайника" in page.text
    assert "Старый чайник" not in page.text


def test_article_has_its_sections_as_anchors(anybody: httpx.Client, help_site: str) -> None:
    index = anybody.get(f"/help/{help_site}").text
    address = next(part for part in index.split('"') if part.startswith(f"/help/{help_site}/~"))
    page = anybody.get(address)
    assert page.status_code == 200
    assert 'id="как-убрать-накипь"' in page.text
    assert "<td>Царапает</td>" in page.text
    assert "<b>" not in page.text
    assert anybody.get(f"/help/{help_site}/filters.md").status_code == 200


def test_search_finds_published_articles_only(anybody: httpx.Client, help_site: str) -> None:
    page = anybody.get(f"/help/{help_site}", params={"q": "как убрать накипь"})
    assert "#как-убрать-накипь" in unquote(page.text)
    assert "Старый чайник" not in page.text
    nothing = anybody.get(f"/help/{help_site}", params={"q": "<i>zzzqqq"})
    assert "<i>" not in nothing.text


@pytest.mark.parametrize(
    "path",
    [
        "help-site/old.md",
        "help-site/unknown.md",
        "help-site/~0",
        "help-site?group=нет",
        "help-off",
        "help-off/filters.md",
        "help-known/filters.md",
        "no-such-site/filters.md",
        # Of another tenant.
        "site-of-globex/filters.md",
        "help-site/errors.md",
    ],
)
def test_what_visitors_may_not_read_is_not_found(
    anybody: httpx.Client, acme: httpx.Client, help_site: str, path: str
) -> None:
    page = anybody.get(f"/help/{path}")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    for article in ARTICLES:
        assert str(article["text"])[:20] not in page.text


def test_removed_article_is_not_found_with_its_votes(
    anybody: httpx.Client, help_site: str, token: Callable[..., str], ingest: Callable[..., httpx.Response]
) -> None:
    article = {"doc_id": "gone.md", "title": "Крышка", "text": "Крышка продаётся отдельно."}
    assert ingest("empty", [article]).status_code == 200
    address = f"/help/{help_site}/gone.md"
    for vote in ("yes", "yes", "no"):
        sent = anybody.post(address, data={"helpful": vote}, headers={"Sec-Fetch-Site": "same-origin"})
        assert (sent.status_code, sent.headers["location"]) == (303, f"{address}?thanks=true#helpful")
    assert anybody.post(address, data={"helpful": "yes"}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    with acting_as(Tenant("empty", "admin")):
        assert votes.count("gone.md", 1) == votes.Votes(2, 1)
    assert "Спасибо" in anybody.get(address, params={"thanks": "true"}).text
    headers = {"Authorization": f"Bearer {token('empty', 'ingest')}"}
    assert anybody.delete("/documents/gone.md", headers=headers).is_success
    assert anybody.get(address).status_code == 404
    with acting_as(Tenant("empty", "admin")):
        assert votes.count("gone.md", 1) == votes.Votes()


def test_listed_help_centre_is_open_to_search_engines(anybody: httpx.Client, help_site: str) -> None:
    page = anybody.get("/help/help-listed/filters.md")
    assert "x-robots-tag" not in page.headers
    assert 'content="noindex"' not in page.text
    assert "Was this article helpful?" in page.text


def test_links_of_a_chat_lead_to_the_section_of_its_site(
    anybody: httpx.Client, server: Server, help_site: str, token: Callable[..., str]
) -> None:
    visitor = anybody.post("/widget/sessions", json={"site": help_site}, headers={"Origin": server.url})
    ivan = {"Authorization": f"Bearer {visitor.json()['token']}"}
    chat = anybody.post("/chats", json={"locale": "ru"}, headers=ivan).json()["chat_id"]
    asked = {"text": "Как часто меняют фильтр для чайника?", "client_id": "c1"}
    assert anybody.post(f"/chats/{chat}/messages", json=asked, headers=ivan).status_code == 202
    early: list[dict[str, object]] = []
    with anybody.stream("GET", f"/chats/{chat}/events", headers=ivan) as events:
        name = ""
        for line in events.iter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if line.startswith("data: ") and name == "sources-early":
                early = json.loads(line.removeprefix("data: "))["citations"]
            elif line.startswith("data: ") and name == "message" and '"author": "bot"' in line.replace('":"', '": "'):
                answer = json.loads(line.removeprefix("data: "))["body"]["turn"]
                break
    assert answer["outcome"] == "answered"
    assert answer["citations"][0]["url"] == "/help/help-site/filters.md"
    assert early[0]["url"] == "/help/help-site/filters.md"
    assert early[0]["snippet"]
    # Over the API there is no link without `OPORA_PUBLIC_URL`.
    headers = {"Authorization": f"Bearer {token('empty')}"}
    told = anybody.post("/ask/run", json={"question": asked["text"]}, headers=headers).json()
    assert told["citations"][0]["url"] is None


def test_customer_opens_a_suggested_article_from_the_chat(browser: Browser, server: Server, help_site: str) -> None:
    with browser.new_context(locale="ru-RU") as context:
        chat = context.new_page()
        chat.goto(f"{server.url}/chat/{help_site}")
        chat.locator("textarea").fill("Можно ли уксусом убрать накипь?")
        chat.keyboard.press("Enter")
        # The archived one of the three has no page; its text opens in the chat.
        expect(chat.locator(".articles .title a")).to_have_count(2)
        chat.get_by_role("button", name="Старый чайник").click()
        expect(chat.locator(".passage .quote")).to_contain_text("Накипь убирают уксусом")
        chat.keyboard.press("Escape")
        with context.expect_page() as opened:
            chat.locator(".articles .title a").last.click()
        page = opened.value
        expect(page.locator("h1")).to_have_text("Накипь в чайнике")
        expect(page.locator("section:target")).to_contain_text("Сода")
        page.get_by_role("button", name="Да").click()
        expect(page.get_by_role("status")).to_contain_text("Спасибо")
        page.get_by_role("searchbox").fill("фильтр")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Фильтр для чайника")).to_be_visible()
