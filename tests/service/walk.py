"""A walk through the product by keyboard only, in either language: from an empty data folder to an article that
closes a gap.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from playwright.sync_api import Browser, Locator, Page, expect

from components.language.texts import text
from settings import ROOT
from tests.desk import PASSWORD
from tests.service.serving import Server

_MOST_TABS = 80

Shoot: TypeAlias = Callable[[str, Page], object]


@dataclass(frozen=True, slots=True)
class Story:
    """Texts that people write on the walk."""

    shop: str
    operator: str
    article: str
    damaged: str
    text: str
    question: str
    term: str
    unanswered: str
    reply: str
    solution: str


STORIES = {
    "ru": Story(
        shop="Магазин «Пристань»",
        operator="Анна",
        article="возврат.md",
        damaged="скан.pdf",
        text="# Возврат товара\n\nТовар надлежащего качества можно вернуть в течение 14 дней после покупки.\n",
        question="Сколько дней можно вернуть товар?",
        term="14 дней",
        unanswered="Чините ли вы холодильники?",
        reply="Да, мастер приедет завтра.",
        solution="Да, мы чиним холодильники любых марок. Мастер приезжает на следующий день.",
    ),
    "en": Story(
        shop="Pristan",
        operator="Anna",
        article="returns.md",
        damaged="scan.pdf",
        text="# Returning a product\n\nYou can return a product within 14 days after you receive it.\n",
        question="Can I return a product?",
        term="14 days",
        unanswered="Do you repair fridges?",
        reply="Yes, a technician will come tomorrow.",
        solution="Yes, we repair fridges of any brand. The technician comes the next day.",
    ),
}


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    expect(target).to_be_visible()
    for _ in range(_MOST_TABS):
        if target.evaluate("element => element === element.getRootNode().activeElement"):
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


def walk(
    browser: Browser,
    server: Server,
    link: str,
    folder: Path,
    shoot: Shoot = lambda name, page: None,
    locale: str = "ru",
) -> None:
    """Walk through the product.

    :param folder: for the files to upload.
    :param shoot: called where a screenshot would be taken.
    """
    story, says = STORIES[locale], partial(text, locale=locale)
    widget = json.loads((ROOT / "ui" / "src" / "locales" / f"{locale}.json").read_text("utf-8"))
    language = "ru-RU" if locale == "ru" else "en-GB"
    with browser.new_context(locale=language) as inside, browser.new_context(locale=language) as outside:
        for context in (inside, outside):
            context.set_default_timeout(30_000)
        page = inside.new_page()
        page.goto(f"{server.url}{link}")
        write(page, says("desk.first.tenant_name"), story.shop)
        write(page, says("desk.first.tenant_id"), "shop")
        write(page, says("desk.sign_in.login"), "anna@shop.example")
        write(page, says("desk.people.name"), story.operator)
        write(page, says("desk.sign_in.password"), PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(says("desk.welcome.title"))

        # Documents: the field for files has the focus, the window of the system that Enter opens there is not a page.
        articles = folder / story.article, folder / story.damaged
        articles[0].write_text(story.text, "utf-8")
        articles[1].write_bytes(b"%PDF-1.4 broken")
        reach(page, page.locator('input[type="file"]'))
        page.locator('input[type="file"]').set_input_files(articles)
        press(page, says("desk.documents.jobs.upload"))
        state = page.locator('[data-live="job"]')
        expect(state.get_by_role("status")).to_contain_text(says("jobs.state.done"), timeout=60_000)
        expect(state.get_by_role("link", name=story.article)).to_be_visible()
        expect(state).to_contain_text(story.damaged)
        expect(state).to_contain_text(says("cli.refusal.file_damaged").partition(",")[0].partition(":")[0])
        shoot("upload", page)

        # The first answer, with its sources.
        page.reload()
        write(page, says("desk.welcome.question"), story.question)
        page.keyboard.press("Enter")
        answer = page.locator(".doc-answer")
        expect(answer).to_contain_text(story.term)
        reach(page, answer.locator("summary"))
        page.keyboard.press("Enter")
        expect(answer.locator("mark")).to_contain_text(story.term)
        shoot("answer", page)

        # The site of the widget.
        write(page, says("desk.welcome.origin"), "https://shop.example")
        page.keyboard.press("Enter")
        expect(page.locator("#widget code").nth(1)).to_have_text("https://shop.example")
        key = re.search(r'data-site="([\w-]+)"', page.locator("#widget pre").inner_text())
        assert key is not None
        for step in ("documents", "ask", "widget"):
            expect(page.locator(f"#{step} h2 .tag")).to_have_text(says("desk.welcome.ready"))

        # A customer asks, and calls a person.
        shop = outside.new_page()
        shop.goto(f"{server.url}/chat/{key[1]}")
        reach(shop, shop.locator("textarea"))
        shop.keyboard.type(story.unanswered)
        shop.keyboard.press("Enter")
        # Calling a person before the answer arrives cancels it, and leaves no gap.
        refused = says("outcomes.refused.no_relevant_context").partition(".")[0]
        expect(shop.locator(".message.bot").last).to_contain_text(refused)
        press(shop, widget["person"])
        expect(shop.locator(".status")).to_contain_text(widget["queued"])

        # The operator takes the chat and answers.
        reach(page, page.get_by_role("link", name=says("desk.menu.inbox")).first)
        page.keyboard.press("Enter")
        row = page.locator(".row a").first
        expect(row).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator(".message.customer").first).to_contain_text(story.unanswered)
        page.keyboard.press("t")
        expect(page.locator(".about .tag").first).to_have_text(story.operator)
        page.keyboard.press("r")
        expect(page.locator("#text")).to_be_focused()
        page.keyboard.type(story.reply)
        page.keyboard.press("Control+Enter")
        expect(shop.locator(".message").last).to_contain_text(story.reply)
        expect(page.locator(".message").last).to_contain_text(story.reply)
        shoot("reply", page)

        # An unanswered question becomes an article.
        page.keyboard.press("Escape")
        reach(page, page.get_by_role("link", name=says("desk.menu.gaps")).first)
        page.keyboard.press("Enter")
        gap = page.get_by_role("link", name=story.unanswered, exact=True)
        reload_until_shown(page, gap)
        reach(page, gap)
        page.keyboard.press("Enter")
        reach(page, page.get_by_role("link", name=says("desk.gaps.write")))
        page.keyboard.press("Enter")
        title = page.locator('[name="title"]')
        reach(page, title)
        page.keyboard.press("Control+A")
        page.keyboard.type(story.unanswered.rstrip("?"))
        reach(page, page.locator('[name="text"]'))
        page.keyboard.type(story.solution)
        reach(page, page.locator('[name="then"][value="preview"]'))
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text(says("desk.articles.asked", asked=1, total=1), timeout=60_000)
        expect(page.locator("main")).to_contain_text(says("desk.articles.effect.answers"))
        publish = page.locator('form[action$="/publish"] button')
        reach(page, publish)
        shoot("article", page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("1")
        reach(page, page.get_by_role("link", name=says("desk.menu.gaps")).first)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name=story.unanswered, exact=True)).to_have_count(0)

        # The link has done its work.
        again = outside.new_page()
        again.goto(f"{server.url}{link}")
        expect(again.get_by_role("heading", level=1)).to_have_text(says("service.link_used.title"))
