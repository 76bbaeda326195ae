"""A walk through the product, by keyboard only: from an empty data folder to an article that closes a gap."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from settings import Settings
from tenants.desk import first_run
from tests import desk_views
from tests.desk import PASSWORD
from tests.service.serving import Server, environment, in_force, serving

ARTICLE = "# Возврат товара\n\nТовар надлежащего качества можно вернуть в течение 14 дней после покупки.\n"
QUESTION = "Сколько дней можно вернуть товар?"
_MOST_TABS = 80

Shoot: TypeAlias = Callable[[str, Page], object]


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A service on an empty data folder, and the path of its one-time link."""
    settings = Settings(data_dir=tmp_path / "data", default_locale="ru", rate_limit_per_minute=0)
    with in_force(settings):
        secret = first_run.open_link()
        with serving(environment(settings)) as server:
            yield server, f"/desk/first-run/{secret}"


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    expect(target).to_be_visible()
    for _ in range(_MOST_TABS):
        if target.evaluate("one => one === one.getRootNode().activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not get there")


def reload_until_shown(page: Page, target: Locator) -> None:
    """Reload: records are written a moment after the answer."""
    until = monotonic() + 30
    while monotonic() < until:
        try:
            expect(target).to_be_visible(timeout=1_000)
            return
        except AssertionError:
            page.reload()
    expect(target).to_be_visible()


def write(page: Page, label: str, text: str) -> None:
    reach(page, page.get_by_label(label, exact=True))
    page.keyboard.type(text)


def press(page: Page, name: str | re.Pattern[str]) -> None:
    reach(page, page.get_by_role("button", name=name).first)
    page.keyboard.press("Enter")


def test_the_whole_walk_works_by_keyboard_only(browser: Browser, begun: tuple[Server, str], tmp_path: Path) -> None:
    server, link = begun
    with browser.new_context(bypass_csp=True, locale="ru-RU") as context:
        page = context.new_page()
        page.goto(f"{server.url}{link}")
        expect(page.locator('[name="tenant_id"]')).to_be_visible()
        assert desk_views.faults(page) == []
    walk(browser, server, link, tmp_path)
    assert not [line for line in server.log if " ERROR " in line]


def walk(browser: Browser, server: Server, link: str, folder: Path, shoot: Shoot = lambda name, page: None) -> None:
    """Walk through the product.

    :param folder: for the files to upload.
    :param shoot: called where a screenshot would be taken.
    """
    with browser.new_context(locale="ru-RU") as inside, browser.new_context(locale="ru-RU") as outside:
        for context in (inside, outside):
            context.set_default_timeout(30_000)
        page = inside.new_page()
        page.goto(f"{server.url}{link}")
        write(page, "Название организации", "Магазин «Пристань»")
        write(page, "Короткое имя латиницей", "shop")
        write(page, "Имя для входа", "anna@shop.example")
        write(page, "Имя для клиентов", "Анна")
        write(page, "Пароль", PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Что дальше")
        shoot("welcome", page)

        # Documents: the field for files has the focus, the window of the system that Enter opens there is not a page.
        articles = folder / "возврат.md", folder / "скан.pdf"
        articles[0].write_text(ARTICLE, "utf-8")
        articles[1].write_bytes(b"%PDF-1.4 broken")
        reach(page, page.locator('input[type="file"]'))
        page.locator('input[type="file"]').set_input_files(articles)
        press(page, "Загрузить файлы")
        state = page.locator('[data-live="job"]')
        expect(state.get_by_role("status")).to_contain_text("готово", timeout=60_000)
        expect(state.get_by_role("link", name="возврат.md")).to_be_visible()
        expect(state).to_contain_text("скан.pdf")
        expect(state).to_contain_text("файл повреждён")
        shoot("upload", page)

        # The first answer, with its sources.
        page.reload()
        write(page, "Вопрос, как его задал бы клиент", QUESTION)
        page.keyboard.press("Enter")
        answer = page.locator(".doc-answer")
        expect(answer).to_contain_text("14 дней")
        reach(page, answer.locator("summary"))
        page.keyboard.press("Enter")
        expect(answer.locator("mark")).to_contain_text("14 дней")
        shoot("answer", page)

        # The site of the widget.
        write(page, "Адрес сайта", "https://shop.example")
        page.keyboard.press("Enter")
        expect(page.locator("#widget code").nth(1)).to_have_text("https://shop.example")
        key = re.search(r'data-site="([\w-]+)"', page.locator("#widget pre").inner_text())
        assert key is not None
        for step in ("documents", "ask", "widget"):
            expect(page.locator(f"#{step} h2 .tag")).to_have_text("готово")

        # A customer asks, and calls a person.
        shop = outside.new_page()
        shop.goto(f"{server.url}/chat/{key[1]}")
        reach(shop, shop.locator("textarea"))
        shop.keyboard.type("Чините ли вы холодильники?")
        shop.keyboard.press("Enter")
        # Calling a person before the answer arrives cancels it, and leaves no gap.
        expect(shop.locator(".message.bot").last).to_contain_text("Не нашёл точного ответа")
        press(shop, "Позвать сотрудника")
        expect(shop.locator(".status")).to_contain_text("сотрудник")

        # The operator takes the chat and answers.
        reach(page, page.get_by_role("link", name="Чаты").first)
        page.keyboard.press("Enter")
        row = page.locator(".row a").first
        expect(row).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator(".message.customer").first).to_contain_text("холодильники")
        page.keyboard.press("t")
        expect(page.locator(".about .tag").first).to_have_text("Анна")
        page.keyboard.press("r")
        expect(page.locator("#text")).to_be_focused()
        page.keyboard.type("Да, мастер приедет завтра.")
        page.keyboard.press("Control+Enter")
        expect(shop.locator(".message").last).to_contain_text("мастер приедет завтра")
        shoot("reply", page)

        # An unanswered question becomes an article.
        page.keyboard.press("Escape")
        reach(page, page.get_by_role("link", name="Знания").first)
        page.keyboard.press("Enter")
        gap = page.get_by_role("link", name="Чините ли вы холодильники?", exact=True)
        reload_until_shown(page, gap)
        reach(page, gap)
        page.keyboard.press("Enter")
        reach(page, page.get_by_role("link", name="Написать статью"))
        page.keyboard.press("Enter")
        title = page.locator('[name="title"]')
        reach(page, title)
        page.keyboard.press("Control+A")
        page.keyboard.type("Чините ли вы холодильники")
        reach(page, page.locator('[name="text"]'))
        page.keyboard.type("Да, мы чиним холодильники любых марок. Мастер приезжает на следующий день.")
        reach(page, page.locator('[name="then"][value="preview"]'))
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("Готово. Задано вопросов: 1 из 1.", timeout=60_000)
        expect(page.locator("main")).to_contain_text("ответит статья")
        publish = page.locator('form[action$="/publish"] button')
        reach(page, publish)
        shoot("article", page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("1")
        reach(page, page.get_by_role("link", name="Знания").first)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Чините ли вы холодильники?", exact=True)).to_have_count(0)

        # The link has done its work.
        again = outside.new_page()
        again.goto(f"{server.url}{link}")
        expect(again.get_by_role("heading", level=1)).to_have_text("Ссылка больше не работает")
