"""The widget in a real browser against the real service: ask, read the source, call a person, read the reply."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from settings import Settings, get_settings
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.context import Tenant, acting_as
from tests.browser.conftest import launched
from tests.service.serving import Server, environment
from ui.pages import DEMO_SITE


@pytest.fixture
def demo_site(installation: Settings) -> str:
    with pytest.MonkeyPatch.context() as patch, acting_as(Tenant("acme", "admin")):
        for name, value in environment(installation).items():
            patch.setenv(name, value)
        get_settings.cache_clear()
        sites.add("Магазин", [], SiteConfig(welcome="Здравствуйте!"), key=DEMO_SITE)
    get_settings.cache_clear()
    return DEMO_SITE


def test_a_customer_asks_and_a_person_takes_over(
    acme: httpx.Client, server: Server, token: Callable[..., str], demo_site: str
) -> None:
    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_context(locale="ru-RU").new_page()
        # Another process sees a new site within seconds.
        while (shop := page.goto(f"{server.url}/demo")) is None or shop.status == 404:
            continue
        page.locator(".launcher").click()
        page.locator("textarea").fill("Что означает код E20?")
        page.keyboard.press("Enter")
        expect(page.locator('[data-outcome="answered"]')).to_contain_text("вода не сливается")
        page.locator(".cite").first.click()
        expect(page.locator(".passage .quote")).to_contain_text("Очистите фильтр сливного насоса")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Позвать сотрудника").click()
        expect(page.locator(".status")).to_have_text("Ждём сотрудника")
        headers = {"Authorization": f"Bearer {token('acme', 'operate', subject='olga')}"}
        [chat] = [one for one in acme.get("/desk/chats", headers=headers).json() if one["site"] == demo_site]
        body = {"text": "Добрый день! Приедет мастер.", "seen": chat["last_seq"], "name": "Ольга"}
        assert acme.post(f"/desk/chats/{chat['chat_id']}/reply", json=body, headers=headers).is_success
        expect(page.locator(".message.operator")).to_contain_text("Приедет мастер")
        expect(page.locator(".status")).to_have_text("Ольга на связи")
        before = page.locator(".message .text").all_text_contents()
        page.reload()
        page.locator(".launcher").click()
        expect(page.locator(".message.operator")).to_contain_text("Приедет мастер")
        expect(page.locator(".message .text")).to_have_text(before)
        browser.close()
