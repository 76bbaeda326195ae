"""The demo from the README: `opora demo`, then the shop's page, by keyboard only."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from settings import ROOT, Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tests.service.serving import Server, environment, in_force, serving

pytestmark = pytest.mark.browser

TENANT = "demo-ru"
SIGN_IN: dict[str, str] = {}
"""Organisation, login and password that `opora demo` printed."""
MAX_TABS = 60
CLICKS = 5
"""Suggested questions asked in one conversation at most."""
_IS_FOCUSED = "one => one.getRootNode().activeElement === one"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A data folder filled by `opora demo` in both languages."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("demo"), fetch_models=False, default_locale="ru")
    english = _set_up(settings, {"LC_ALL": "en_GB.UTF-8"})
    assert "6 of 6" in english
    assert "enter demo-en" in english
    assert "anna@example.com" in english.partition("E20")[0]
    assert _missing("README.md", english) == []
    printed = _set_up(settings, {"LC_ALL": "C.UTF-8"}, "--locale", "ru")
    assert "6 из 6" in printed
    assert _missing("README.ru.md", printed) == []
    assert printed.rstrip().endswith("/demo")
    found = re.search(r"войдите: имя (\S+), пароль (\S+)", printed)
    company = re.search(r"организацию, введите (\S+)", printed)
    assert found is not None
    assert company is not None
    with in_force(settings):
        policies = [Registry().get(f"demo-{locale}").policy for locale in ("ru", "en")]
        assert all(one["trace_content"] and "8 800 000-41-17" in str(one["handoff_channel"]) for one in policies)
    SIGN_IN.update(company=company[1], login=found[1], password=found[2])
    return settings


def _missing(readme: str, printed: str) -> list[str]:
    """Return the lines of the demo's output in a README that the demo did not print; timings differ."""
    sample = re.search(r"```text\n(.*?)```", (ROOT / readme).read_text(encoding="utf-8"), re.DOTALL)
    assert sample is not None
    shown, real = (re.sub(r"[\d.]+ (?:ms|мс)$", "", text, flags=re.MULTILINE) for text in (sample[1], printed))
    lines = [line.removesuffix(" …") for line in shown.splitlines() if line != "…"]
    return [line for line in lines if line not in real.splitlines()]


def _set_up(settings: Settings, variables: dict[str, str], *options: str) -> str:
    """Run `opora demo` and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", "demo", *options],
        cwd=ROOT,
        env={**os.environ, **environment(settings), **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def shop(demo: Settings) -> Iterator[Server]:
    with serving(environment(demo)) as server:
        yield server


@pytest.fixture
def page(browser: Browser, shop: Server) -> Iterator[Page]:
    with browser.new_context(locale="ru-RU") as context:
        page = context.new_page()
        page.goto(f"{shop.url}/demo")
        yield page


def move_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press the key until the element has the focus."""
    target.wait_for()
    for _ in range(MAX_TABS):
        if target.evaluate(_IS_FOCUSED):
            break
        page.keyboard.press(key)
    expect(target).to_be_focused()


def test_start_page_leads_to_the_desk_of_the_demo(page: Page, shop: Server) -> None:
    page.goto(shop.url)
    page.get_by_role("link", name="Рабочее место").click()
    page.locator("[name=company]").fill(SIGN_IN["company"])
    page.locator("[name=login]").fill(SIGN_IN["login"])
    page.locator("[name=password]").fill(SIGN_IN["password"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ждут")).to_be_visible()
    expect(page.get_by_role("link", name="Анна", exact=True)).to_be_visible()
    page.goto(f"{shop.url}/desk/playground")
    page.evaluate("document.querySelector('[data-waits]').addEventListener('submit', (one) => one.preventDefault())")
    page.locator("textarea[name=question]").fill("Что означает код E20?")
    page.locator("[data-waits] button.main").click()
    expect(page.locator("[data-working]")).to_have_text(re.compile(r"Ищу ответ: \d+ с"))


@contextmanager
def open_chat(browser: Browser, shop: Server, locale: str) -> Iterator[Page]:
    """Open the chat on the shop's page, in a browser of this language."""
    with browser.new_context(locale=locale) as context:
        page = context.new_page()
        page.goto(f"{shop.url}/demo")
        page.locator(".launcher").click()
        yield page


@pytest.mark.parametrize("locale", ["ru", "en"])
@pytest.mark.parametrize("starter", [0, 1])
def test_suggested_questions_are_answered_when_clicked(
    browser: Browser, shop: Server, locale: str, starter: int
) -> None:
    with open_chat(browser, shop, locale) as page:
        chip, answers = page.locator(".chip").nth(starter), page.locator("[data-outcome]")
        asked: set[str] = set()
        while len(asked) < CLICKS:
            question = chip.inner_text()
            chip.click()
            asked.add(question)
            answer = answers.nth(len(asked) - 1)
            expect(answer, question).to_have_attribute("data-outcome", re.compile("answered"))
            expect(page.locator(".live")).to_have_count(0)
            unasked = [one for one in page.locator(".chip").all_inner_texts() if one not in asked]
            if not unasked:
                break
            chip = page.locator(".chip", has_text=re.compile(f"^{re.escape(unasked[0])}$"))
    assert len(asked) > 1


@pytest.mark.parametrize(("locale", "question"), [("ru", "возврат"), ("en", "do you have instalments?")])
def test_topics_of_a_vague_question_are_answered_when_clicked(
    browser: Browser, shop: Server, locale: str, question: str
) -> None:
    with open_chat(browser, shop, locale) as page:
        page.locator("textarea").fill(question)
        page.keyboard.press("Enter")
        topics = page.locator('[data-outcome="clarify"] .chip')
        expect(topics).to_have_count(3)
        topics.first.click()
        expect(page.locator("[data-outcome]").last).to_have_attribute("data-outcome", re.compile("answered"))


@pytest.mark.parametrize(("locale", "words"), [("ru", "Чем помочь?"), ("en", "How can we help?")])
def test_the_help_centre_is_in_the_language_of_its_shop(shop: Server, locale: str, words: str) -> None:
    page = httpx.get(f"{shop.url}/help/demo-{locale}", headers={"Accept-Language": "ru"})
    assert words in page.text


def test_the_demo_can_be_walked_through_by_keyboard_alone(page: Page, shop: Server, demo: Settings) -> None:
    field, answers = page.locator("textarea"), page.locator('[data-outcome="answered"]')
    move_to(page, page.locator(".launcher"))
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.type("Стиральная машина показывает ошибку E20, что делать?")
    page.keyboard.press("Enter")
    expect(answers).to_contain_text("вода не сливается")
    expect(page.locator(".live, .unsent")).to_have_count(0)

    number = answers.locator(".cite").first
    move_to(page, number, "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".passage mark")).to_be_visible()
    expect(page.get_by_role("button", name="Закрыть источник")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".passage")).to_be_hidden()
    expect(number).to_be_focused()

    move_to(page, answers.locator(".sources summary"))
    page.keyboard.press("Enter")
    expect(answers.locator(".source").first).to_be_visible()
    move_to(page, page.get_by_role("button", name="Изменить"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(page.locator(".panel")).to_be_visible()

    move_to(page, page.get_by_role("button", name="Позвать сотрудника"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".status")).to_have_text("Ожидаем ответа сотрудника")
    with httpx.Client(base_url=shop.url, timeout=60, headers=_staff(demo)) as desk:
        [chat] = _handed_over(desk)
        body = {"text": "Здравствуйте! Пришлю мастера.", "seen": chat["last_seq"], "name": "Анна"}
        assert desk.post(f"/desk/chats/{chat['chat_id']}/reply", json=body).is_success
        expect(page.locator(".message.operator")).to_contain_text("Пришлю мастера")
        move_to(page, field)
        page.keyboard.type("Спасибо!")
        page.keyboard.press("Enter")
        expect(page.locator(".message.customer")).to_have_count(2)
        expect(page.locator(".unsent")).to_have_count(0)
        [chat] = _handed_over(desk)
        ended = desk.post(f"/desk/chats/{chat['chat_id']}/resolve", json={"version": chat["version"]})
        assert ended.is_success, ended.text

    move_to(page, page.get_by_role("radio", name="5 из 5"), "Shift+Tab")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="4 из 5")).to_be_checked()
    move_to(page, page.get_by_role("button", name="Отправить оценку"))
    page.keyboard.press("Enter")
    expect(page.locator(".rating")).to_have_text("Спасибо за оценку!")
    move_to(page, page.get_by_role("button", name="Закрыть чат"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_hidden()
    expect(page.locator(".launcher")).to_be_focused()


def _handed_over(desk: httpx.Client) -> list[dict[str, Any]]:
    """Return the chats of the page that a person was called to."""
    chats = desk.get("/desk/chats").json()
    return [chat for chat in chats if chat["channel"] == "widget" and chat["ticket_id"]]


def _staff(settings: Settings) -> dict[str, str]:
    token = issue(settings, TENANT, scopes=("operate",), subject="anna", ttl_seconds=3_600)
    return {"Authorization": f"Bearer {token}"}
