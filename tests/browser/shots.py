"""Screenshots for people to look at: `python -m tests.browser.shots FOLDER`.

The thirteen outcomes in the widget. `tests.browser.pictures` takes the pictures of README and docs.
"""

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import ask, host_page, launched, open_chat
from tests.browser.fake_service import FakeService, shop
from tests.browser.turns import OUTCOMES

LOOKS = (("light", "light", 460, 740), ("dark", "dark", 460, 740), ("phone", "light", 390, 780))
QUESTION = "Стиральная машина показывает E20, что делать?"


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
        browser.close()


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
