"""Take the pictures of README and docs: `python -m tests.browser.pictures`.

The demo shop with an answer, and four steps of the walk through the product; in both languages, in light and dark mode
and on a phone. Look at each of them before you commit it.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from components.language.texts import LOCALES
from settings import ROOT, Settings
from tenants.desk import first_run
from tests.browser.conftest import ask, launched, open_chat
from tests.pictures import FOLDER, RECORD, digests
from tests.service.serving import Server, environment, in_force, serving
from tests.service.walk import walk

LOOKS = (("", "light", 1200, 800), ("-dark", "dark", 1200, 800), ("-phone", "light", 390, 780))
QUESTIONS = {"ru": "Сколько стоит доставка?", "en": "How much is delivery?"}
_LANGUAGES = {"ru": "ru-RU", "en": "en-GB"}
_SCROLL = {
    "upload": "window.scrollTo(0, 0)",
    "answer": "document.querySelector('.doc-answer').scrollIntoView({block: 'center'})",
    "reply": "document.querySelector('.message:last-of-type').scrollIntoView({block: 'end'})",
    "article": "window.scrollTo(0, 0)",
}
"""Bring into view what a picture of the walk is about."""
_COLOURS = 128
"""Of a picture: a third of the size, for the repository."""


def main() -> None:
    """Take every picture and record the state of its sources."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for locale in LOCALES:
            (FOLDER / locale).mkdir(exist_ok=True)
            with TemporaryDirectory() as data:
                _take_shop(browser, locale, data)
            with TemporaryDirectory() as data:
                _take_walk(browser, locale, Path(data))
        browser.close()
    RECORD.write_text(yaml.safe_dump(digests()), encoding="utf-8")


def _take_shop(browser: Browser, locale: str, data: str) -> None:
    settings = {"OPORA_DATA_DIR": data, "OPORA_FETCH_MODELS": "false", "OPORA_DEFAULT_LOCALE": locale}
    command = [sys.executable, "-m", "cli", "demo", "--locale", locale]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=True, stdout=subprocess.DEVNULL)
    server = Server(settings)
    try:
        server.wait_until_up()
        for suffix, scheme, width, height in LOOKS:
            with browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light",
                viewport={"width": width, "height": height},
                locale=_LANGUAGES[locale],
                reduced_motion="reduce",
            ) as context:
                page = context.new_page()
                page.goto(f"{server.url}/demo")
                open_chat(page)
                ask(page, QUESTIONS[locale])
                page.locator('[data-outcome="answered"]').wait_for()
                page.locator(".unsent, .live").first.wait_for(state="detached")
                page.locator(".sources summary").click()
                page.locator(".message.customer").last.scroll_into_view_if_needed()
                page.mouse.move(5, 5)
                _save(page, FOLDER / locale / f"shop{suffix}.png")
    finally:
        server.stop()


def _take_walk(browser: Browser, locale: str, data: Path) -> None:
    def shoot(name: str, page: Page) -> None:
        usual = page.viewport_size
        for suffix, scheme, width, height in LOOKS:
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate(_SCROLL[name])
            _save(page, FOLDER / locale / f"{name}{suffix}.png")
        page.emulate_media(color_scheme="light")
        if usual is not None:
            page.set_viewport_size(usual)

    # By words alone, as in the test of the walk: one article is too little for an encoder to be sure of anything.
    settings = Settings(
        data_dir=data / "data", models_dir=data, fetch_models=False, default_locale=locale, rate_limit_per_minute=0
    )
    with in_force(settings):
        link = f"/desk/first-run/{first_run.open_link()}"
        with serving(environment(settings)) as server:
            walk(browser, server, link, data, shoot, locale)


def _save(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    Image.open(path).quantize(_COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
