"""The widget in a real browser against the real service: ask, read the source, call a person, read the reply."""

import re
from collections.abc import Callable
from itertools import pairwise
from time import time

import httpx
import jwt
import pytest
from playwright.sync_api import Browser, expect

from settings import Settings
from tenants.accounts import policy
from tenants.chats import sites
from tenants.chats.sites import Site, SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.service.serving import Server, in_force
from ui.pages import DEMO_SITES

SHOP = "http://shop.test"


@pytest.fixture(scope="module")
def demo_site(installation: Settings) -> str:
    with in_force(installation), acting_as(Tenant("acme", "admin")):
        sites.add("Магазин", [], SiteConfig(welcome="Здравствуйте!"), key=DEMO_SITES["ru"])
    return DEMO_SITES["ru"]


def test_files_hours_and_presence_reach_the_widget_and_the_operators(
    browser: Browser, acme: httpx.Client, server: Server, token: Callable[..., str], demo_site: str
) -> None:
    staff = {"Authorization": f"Bearer {token('acme', 'operate', subject='olga')}"}
    boss = {"Authorization": f"Bearer {token('acme', 'admin', subject='boss')}"}
    closed = {"zone": "Europe/Moscow", "week": {}, "away": {"ru": "Сейчас у нас выходной."}}
    assert acme.patch(f"/sites/{demo_site}", json={"config": {"hours": closed}}, headers=boss).is_success
    with browser.new_context(locale="ru-RU") as context:
        page = context.new_page()
        page.goto(f"{server.url}/chat/{demo_site}")
        field, attachment = page.locator("input[type=file]"), page.locator(".attachment")
        field.set_input_files({"name": "run.exe", "mimeType": "application/pdf", "buffer": b"MZ\x90\x00" * 100})
        expect(attachment).to_contain_text("Можно отправить картинку")
        field.set_input_files({"name": "чек.txt", "mimeType": "text/plain", "buffer": "Чек на 490 ₽".encode()})
        expect(attachment).to_contain_text("Б")
        expect(page.get_by_role("button", name="Отправить")).to_be_enabled()
        page.locator("textarea").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".message.bot .text")).to_contain_text("его увидит сотрудник")
        with page.expect_download() as download:
            page.get_by_role("button", name="Скачать файл чек.txt").click()
        assert download.value.path().read_text(encoding="utf-8") == "Чек на 490 ₽"
        page.get_by_role("button", name="Позвать сотрудника").click()
        expect(page.locator(".event").last).to_contain_text("Сейчас у нас выходной")
        expect(page.locator(".status")).to_contain_text("Сейчас у нас выходной")
        [chat] = [
            one
            for one in acme.get("/desk/chats", headers=staff).json()
            if (one["state"], one["site"]) == ("queued", demo_site)
        ]
        path = f"/desk/chats/{chat['chat_id']}"
        assert acme.post(f"{path}/take", json={"version": chat["version"], "name": "Ольга"}, headers=staff).is_success
        with acme.stream("GET", f"{path}/events", params={"name": "Ольга"}, headers=staff) as events:
            expect(page.locator(".typing")).to_have_text("Ольга читает переписку")
            assert acme.post(f"{path}/typing", json={"name": "Ольга", "active": True}, headers=staff).is_success
            expect(page.locator(".typing")).to_have_text("Ольга печатает…")
            page.locator("textarea").press_sequentially("Спасибо")
            typing = (line for before, line in pairwise(events.iter_lines()) if before == "event: typing")
            assert '"customer"' in next(typing)
        expect(page.locator(".typing")).to_have_count(0)


@pytest.fixture(scope="module")
def account_site(installation: Settings, acme: httpx.Client) -> Site:
    with in_force(installation), acting_as(Tenant("acme", "admin")):
        policy.change(chat_tools="identified")
        return sites.add("Кабинет", [SHOP, "*"], identified=True)


def test_a_signed_in_customer_has_chat_tools_on_the_full_page(
    account_site: Site, browser: Browser, server: Server
) -> None:
    site = account_site
    assert site.identity_secret
    signed = {"sub": "customer-7", "aud": "opora", "exp": int(time()) + 600}
    identity = jwt.encode(signed, site.identity_secret, "HS256")
    address = f"{server.url}/chat/{site.key}"
    field = f'<input name=identity value="{identity}">'
    form = f'<form method=post action="{address}/customer">{field}<button>Чат</button></form>'
    with browser.new_context(locale="ru-RU") as context:
        context.route(re.compile("[.]test/"), lambda route: route.fulfill(body=form, content_type="text/html"))
        page = context.new_page()

        def open_from(origin: str) -> None:
            page.goto(f"{origin}/")
            page.get_by_role("button").click()
            page.wait_for_url(f"{address}/customer")

        open_from("http://elsewhere.test")
        expect(page.locator("body")).to_contain_text("origin_forbidden")
        page.goto(address)
        page.locator("textarea").fill("Что означает код E20?")
        page.keyboard.press("Enter")
        expect(page.locator('[data-outcome="answered"]')).to_contain_text("вода не сливается")
        expect(page.locator(".meter")).to_have_count(0)

        open_from(SHOP)
        page.locator("textarea").fill("Что означает код E20?")
        page.keyboard.press("Enter")
        expect(page.locator(".meter")).to_be_visible()
        page.get_by_role("button", name="Продолжить в новом чате").click()
        expect(page.locator(".event")).to_contain_text("Этот чат продолжает прежний.")
