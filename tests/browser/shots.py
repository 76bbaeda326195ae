"""Screenshots for people to look at: `python -m tests.browser.shots FOLDER`.

The thirteen outcomes; the demo shop with an answer of the real service, which `docs/images/widget.png` shows; and the
walk through the product that README tells with pictures.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from settings import ROOT, Settings
from tenants.desk import first_run
from tests.browser.conftest import ask, host_page, launched, open_chat
from tests.browser.fake_service import FakeService, shop
from tests.browser.turns import OUTCOMES
from tests.service.serving import Server, environment, in_force, serving
from tests.service.test_walk import walk

LOOKS = (("light", "light", 460, 740), ("dark", "dark", 460, 740), ("phone", "light", 390, 780))
SHOP_LOOKS = (("light", "light", 1200, 800), ("dark", "dark", 1200, 800), ("phone", "light", 390, 780))
QUESTION = "Стиральная машина показывает E20, что делать?"
SHOP_QUESTION = "Сколько дней можно вернуть товар?"
COLOURS = 128


def main(folder: Path) -> None:
    """Take each screenshot in light and dark mode and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for name, scheme, width, height in LOOKS:
            for outcome, turn in OUTCOMES.items():
                service = FakeService()
                service.answers = [turn()]
                with service.running(), shop(host_page(service)) as address:
                    page = _page(browser, scheme, width, height)
                    page.goto(address)
                    _ask(page, outcome)
                    page.screenshot(path=folder / f"{name}-{outcome}.png")
                    page.context.close()
        with TemporaryDirectory() as data:
            _shoot_shop(browser, folder, data)
        with TemporaryDirectory() as data:
            _shoot_walk(browser, folder, Path(data))
        browser.close()


def _shoot_shop(browser: Browser, folder: Path, data: str) -> None:
    settings = {"OPORA_DATA_DIR": data, "OPORA_FETCH_MODELS": "false", "OPORA_DEFAULT_LOCALE": "ru"}
    subprocess.run([sys.executable, "-m", "cli", "demo"], cwd=ROOT, env={**os.environ, **settings}, check=True)
    server = Server(settings)
    try:
        server.wait_until_up()
        for name, scheme, width, height in SHOP_LOOKS:
            page = _page(browser, scheme, width, height)
            page.goto(f"{server.url}/demo")
            page.screenshot(path=folder / f"demo-closed-{name}.png")
            _ask(page, "answered", SHOP_QUESTION)
            page.mouse.move(5, 5)
            shot = folder / f"demo-{name}.png"
            page.screenshot(path=shot)
            # A third of the size, for the repository.
            Image.open(shot).quantize(COLOURS).save(shot, optimize=True)
            page.locator(".cite").first.click()
            page.locator(".passage mark").wait_for()
            page.screenshot(path=folder / f"demo-passage-{name}.png")
            page.context.close()
    finally:
        server.stop()


def _shoot_walk(browser: Browser, folder: Path, data: Path) -> None:
    """Take the screenshots of the README."""

    def shoot(name: str, page: Page) -> None:
        shot = folder / f"walk-{name}.png"
        page.screenshot(path=shot)
        Image.open(shot).quantize(COLOURS).save(shot, optimize=True)

    settings = Settings(data_dir=data / "data", default_locale="ru", rate_limit_per_minute=0)
    with in_force(settings):
        link = f"/desk/first-run/{first_run.open_link()}"
        with serving(environment(settings)) as server:
            walk(browser, server, link, data, shoot)


def _page(browser: Browser, scheme: str, width: int, height: int) -> Page:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        locale="ru-RU",
    )
    return context.new_page()


def _ask(page: Page, outcome: str, question: str = QUESTION) -> None:
    open_chat(page)
    ask(page, question)
    page.locator(f'[data-outcome="{outcome}"]').wait_for()
    page.locator(".unsent, .live").first.wait_for(state="detached")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
