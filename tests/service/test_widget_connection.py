"""The widget over bad networks and service crashes: the final thread equals that of an undisturbed chat."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Simulator
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.browser.conftest import ask
from tests.browser.proxy import Proxy
from tests.service.serving import ARTICLES, Server, environment, in_force

QUESTION = "Что означает код E20?"
SITE = "pristan"
SLOW = Knobs(tokens_per_second=3)
RESTART_MS = 90_000
"""Longest time of a restart plus the pause between two retries, on a busy machine."""
NO_LOCKS = "delete Navigator.prototype.locks;"
BRISK = """const later = window.setTimeout;
window.setTimeout = (work, ms, ...rest) => later(work, Number.isInteger(ms) ? ms : ms / 10, ...rest);
"""
"""Shortens the pauses between retries, of which there are dozens here, to a tenth. Only they have a random length."""
HIDE = """hidden => {
  Object.defineProperty(document, 'visibilityState', {configurable: true, value: hidden ? 'hidden' : 'visible'});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


class Service:
    """A service that a test may kill and restart, with one tenant whose answers are written by a model."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.server = self._started()

    def kill(self) -> None:
        self.server.process.kill()

    def restart(self) -> None:
        self.server.stop()
        self.server = self._started()

    def _started(self) -> Server:
        server = Server(environment(self.settings))
        server.wait_until_up()
        return server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, simulated_models: tuple[Simulator, str]) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("connection")
    settings = _prepared(folder, simulated_models[1])
    service = Service(settings)
    token = issue(settings, "shop", scopes=("ingest",), subject="anna", ttl_seconds=3_600)
    headers = {"Authorization": f"Bearer {token}"}
    try:
        ingested = httpx.post(
            f"{service.server.url}/ingest/run", json={"documents": ARTICLES}, headers=headers, timeout=120
        )
        assert ingested.is_success, ingested.text
        yield service
    finally:
        service.server.stop()


def _prepared(folder: Path, models_url: str) -> Settings:
    settings = Settings(
        data_dir=folder,
        pipelines_dir=adapt(folder / "pipelines", models_url),
        rate_limit_per_minute=0,
        rate_limit_per_day=0,
        default_locale="ru",
        chat_messages_per_minute=0,
        visitor_sessions_per_minute=0,
        site_sessions_per_minute=0,
    )
    Registry(settings).add("shop", locale="ru")
    with in_force(settings), acting_as(Tenant("shop", "admin")):
        policy.change(profile="ollama")
        sites.add("Магазин", [], SiteConfig(), key=SITE)
    return settings


@pytest.fixture
def proxy(service: Service, simulated_models: tuple[Simulator, str]) -> Iterator[Proxy]:
    simulated_models[0].set_knobs(Knobs())
    with Proxy(service.server.port).running() as proxy:
        yield proxy


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with brisk(browser) as context:
        context.set_default_timeout(RESTART_MS)
        yield context


@contextmanager
def brisk(browser: Browser) -> Iterator[BrowserContext]:
    """A separate browser context with short retry pauses."""
    with browser.new_context(locale="ru-RU") as context:
        context.add_init_script(BRISK)
        yield context


def opened(context: BrowserContext, proxy: Proxy) -> Page:
    page = context.new_page()
    page.goto(f"{proxy.url}/chat/{SITE}")
    expect(page.locator("textarea")).to_be_visible()
    return page


def shows(page: Page, thread: list[str]) -> None:
    """Wait until the page shows exactly this, and no answer is being written."""
    expect(page.locator(".message .text")).to_have_text(thread, timeout=RESTART_MS)
    expect(page.locator(".live, .unsent, .banner")).to_have_count(0, timeout=RESTART_MS)


@pytest.fixture(scope="module")
def undisturbed(browser: Browser, service: Service) -> list[str]:
    """The thread of an undisturbed question and its answer."""
    with Proxy(service.server.port).running() as proxy, browser.new_context(locale="ru-RU") as context:
        page = opened(context, proxy)
        ask(page, QUESTION)
        expect(page.locator('[data-outcome="answered"]')).to_contain_text("вода не сливается")
        expect(page.locator(".live, .unsent")).to_have_count(0)
        thread = page.locator(".message .text").all_text_contents()
        assert len(thread) == 2
        assert {"snapshot", "accepted", "sources-early", "token", "result", "message"} <= set(proxy.events)
    return thread


def test_a_proxy_that_holds_back_64_kilobytes(context: BrowserContext, proxy: Proxy, undisturbed: list[str]) -> None:
    proxy.buffered_bytes = 65_536
    page = opened(context, proxy)
    ask(page, QUESTION)
    shows(page, undisturbed)


def test_eight_tabs_without_locks_over_the_six_connections_of_a_browser(
    context: BrowserContext, proxy: Proxy, undisturbed: list[str]
) -> None:
    thread = undisturbed
    context.add_init_script(NO_LOCKS)
    pages = [opened(context, proxy)]
    ask(pages[0], QUESTION)
    shows(pages[0], thread)
    for _ in range(7):
        pages[-1].evaluate(HIDE, True)
        pages.append(opened(context, proxy))
        shows(pages[-1], thread)
    ask(pages[-1], QUESTION)
    for page in reversed(pages):
        page.evaluate(HIDE, False)
        shows(page, thread * 2)
        page.evaluate(HIDE, True)
    assert proxy.most_streams < 6


@pytest.mark.parametrize("event", ["accepted", "sources-early", "token"])
def test_a_service_killed_in_the_middle_of_an_answer(
    context: BrowserContext,
    proxy: Proxy,
    service: Service,
    simulated_models: tuple[Simulator, str],
    undisturbed: list[str],
    event: str,
) -> None:
    models = simulated_models[0]
    models.set_knobs(SLOW)
    page = opened(context, proxy)
    proxy.on_event = lambda name: service.kill() if name == event else None
    ask(page, QUESTION)
    expect(page.locator(".banner")).to_contain_text("Нет связи", timeout=RESTART_MS)
    proxy.on_event = lambda _: None
    models.set_knobs(Knobs())
    service.restart()
    proxy.port = service.server.port
    shows(page, undisturbed)
    page.reload()
    shows(page, undisturbed)
