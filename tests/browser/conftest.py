"""A real browser, the widget on a page of another origin, and a service with scripted answers."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import TypeVar

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, expect, sync_playwright

from tests import servers
from tests.browser.fake_service import SITE, FakeService, shop
from ui import build

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
T = TypeVar("T")

AXE = build.FOLDER / "node_modules" / "axe-core" / "axe.min.js"

_PATIENCE_MS = 20_000
expect.set_options(timeout=_PATIENCE_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; `OPORA_TEST_CHROMIUM` names another one. Without any the tests are skipped, loudly.

    Closed with the last of these tests: Playwright keeps an event loop running, and other tests have their own.
    """
    with sync_playwright() as playwright:
        browser = launched(playwright)
        yield browser
        browser.close()


def launched(playwright: Playwright) -> Browser:
    """Launch a browser; skip the test without one."""
    binary = os.environ.get("OPORA_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if binary is None or not Path(binary).exists():
        servers.absent("chromium", "Chromium (apt-get install chromium, or set OPORA_TEST_CHROMIUM)")
    return playwright.chromium.launch(executable_path=binary, args=list(_FLAGS))


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService().running() as service:
        yield service


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(locale="ru-RU", timezone_id="Europe/Moscow", reduced_motion="reduce") as context:
        context.set_default_timeout(_PATIENCE_MS)
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def host_page(service: FakeService, body: str = "<h1>Магазин</h1>", style: str = "") -> str:
    """A page of the shop with the widget."""
    return (
        f'<!doctype html><html lang="ru"><head><meta charset="utf-8"><title>Магазин</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main>{body}</main>"
        f'<script src="{service.url}/widget/loader.js" data-site="{SITE}" async></script></body></html>'
    )


@pytest.fixture
def address(service: FakeService) -> Iterator[str]:
    with shop(host_page(service)) as address:
        yield address


@pytest.fixture
def opened(page: Page, address: str) -> Page:
    """The page with the chat open."""
    page.goto(address)
    return open_chat(page)


def open_chat(page: Page) -> Page:
    """Click the launcher and wait until the chat can be written in."""
    page.locator(".launcher").click()
    page.locator("textarea").wait_for()
    return page


def ask(page: Page, question: str) -> None:
    """Write a question and send it."""
    page.locator("textarea").fill(question)
    page.keyboard.press("Enter")


def eventually(page: Page, read: Callable[[], T], expected: T) -> T:
    """Return the value once it is as expected, or the last value after the timeout of these tests."""
    deadline = monotonic() + _PATIENCE_MS / 1_000
    while (value := read()) != expected and monotonic() < deadline:
        page.wait_for_timeout(50)
    return value


def violations(page: Page, scope: str = "document") -> list[str]:
    """Return the violations of accessibility that axe-core finds in a part of the page, a JavaScript expression."""
    if not AXE.exists() and build.packages() is None:
        servers.absent("npm", "the npm packages of the widget cannot be installed")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(f"axe.run({scope}, {{resultTypes: ['violations']}})")
    return [f"{one['id']}: {[node['target'] for node in one['nodes']]}" for one in found["violations"]]


def last_answer(page: Page) -> Locator:
    """Return the newest answer of the bot."""
    return page.locator(".message.bot .answer").last


def shows(page: Page, *texts: str) -> None:
    """Check the messages with texts, and their number."""
    expect(page.locator(".message .text")).to_have_text(list(texts))
