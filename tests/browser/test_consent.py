"""Consent in the widget, and customers who share a browser."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import ask, open_chat, shows
from tests.browser.fake_service import FakeService


def test_another_customer_of_the_browser_sends_nothing_of_the_first(
    page: Page, service: FakeService, address: str
) -> None:
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    service.subject = "u:anna"
    page.goto(address)
    open_chat(page).get_by_role("checkbox").check()
    ask(page, "Первый вопрос")
    service.wait_for_call("/messages")
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (503, "unavailable")
    ask(page, "Я Анна, у меня украли карту")
    expect(page.locator(".unsent")).to_have_count(1)
    page.goto("about:blank")
    of_anna = len(service.called("/messages"))
    service.refusal, service.subject, service.chat = None, "u:boris", None
    page.goto(address)
    open_chat(page)
    expect(page.get_by_role("checkbox")).not_to_be_checked()
    expect(page.locator(".unsent")).to_have_count(0)
    page.get_by_role("checkbox").check()
    ask(page, "Я Борис")
    expect(page.locator(".unsent")).to_have_count(0)
    assert len(service.called("/consent")) == 2
    assert [body["text"] for body in service.called("/messages")[of_anna:]] == ["Я Борис"]
    assert "Анна" not in str(page.evaluate("Object.entries(localStorage)"))


def test_a_page_keeps_consent_and_messages_beside_another_customer(
    context: BrowserContext, page: Page, service: FakeService, address: str
) -> None:
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    service.subject = "u:anna"
    page.clock.install()
    page.goto(address)
    box = open_chat(page).get_by_role("checkbox")
    box.check()
    ask(page, "Первый вопрос")
    expect(page.locator(".message.customer:not(.unsent)")).to_have_count(1)
    service.subject = "v:1"
    other = context.new_page()
    other.goto(address)
    expect(open_chat(other).get_by_role("checkbox")).not_to_be_checked()
    other.close()
    service.subject = "u:anna"
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (503, "unavailable")
    page.clock.fast_forward("15:00")
    ask(page, "Второй вопрос")
    service.wait_for_call("/messages", lambda body: body["text"] == "Второй вопрос")
    expect(page.locator(".unsent")).to_have_count(1)
    expect(box).to_have_count(0)
    page.goto("about:blank")
    service.refusal = None
    page.goto(address)
    open_chat(page)
    shows(page, "Первый вопрос", "Второй вопрос")
    expect(page.locator(".unsent")).to_have_count(0)
    expect(box).to_have_count(0)
    assert len(service.called("/consent")) == 1


def test_nobody_writes_before_they_agree(page: Page, service: FakeService, address: str) -> None:
    service.site["consent"] = {
        "text": "Согласен на обработку персональных данных",
        "url": "https://pristan.example/law",
    }
    page.goto(address)
    open_chat(page)
    box = page.get_by_role("checkbox")
    expect(box).not_to_be_checked()
    ask(page, "Вопрос")
    expect(page.locator(".banner")).to_contain_text("отметьте согласие")
    assert service.called("/messages") == []
    box.check()
    page.get_by_role("button", name="Отправить").click()
    expect(page.locator(".message.customer")).to_have_count(1)
    expect(box).to_have_count(0)
    assert service.wait_for_call("/consent") == [{"text": "Согласен на обработку персональных данных"}]


@pytest.mark.parametrize("code", ["consent_withdrawn", "consent_missing"])
def test_whoever_has_withdrawn_their_consent_is_asked_for_it_again(
    page: Page, service: FakeService, address: str, code: str
) -> None:
    service.begin()
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    page.goto(address)
    open_chat(page)
    box = page.get_by_role("checkbox")
    box.check()
    ask(page, "Вопрос")
    expect(box).to_have_count(0)
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (403, code)
    ask(page, "Ещё вопрос")
    expect(box).not_to_be_checked()
    expect(page.locator(".unsent")).to_contain_text("Ещё вопрос")
    service.refusal = None
    box.check()
    page.locator(".unsent").get_by_role("button").click()
    expect(page.locator(".unsent")).to_have_count(0)
    expect(box).to_have_count(0)
    shows(page, "Вопрос", "Ещё вопрос")


def test_consent_required_during_a_chat_is_asked_for(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    expect(opened.locator(".message.customer:not(.unsent)")).to_have_count(1)
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (403, "consent_missing")
    ask(opened, "Ещё вопрос")
    box = opened.get_by_role("checkbox")
    expect(box).not_to_be_checked()
    expect(opened.locator(".banner")).to_contain_text("отметьте согласие")
    service.refusal = None
    box.check()
    opened.locator(".unsent").get_by_role("button").click()
    shows(opened, "Вопрос", "Ещё вопрос")
    expect(opened.locator(".unsent")).to_have_count(0)
    assert service.called("/consent") == [{"text": "Согласен на обработку"}]
