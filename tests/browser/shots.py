"""Screenshots of the thirteen outcomes: `python -m tests.browser.shots FOLDER`, for people to look at."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ask, host_page, launched, open_chat
from tests.browser.fake_service import FakeService, shop
from tests.browser.turns import OUTCOMES


def main(folder: Path) -> None:
    """Each outcome in light, dark and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for look, scheme, size in (
            ("light", "light", (460, 740)),
            ("dark", "dark", (460, 740)),
            ("phone", "light", (390, 780)),
        ):
            for outcome, turn in OUTCOMES.items():
                service = FakeService()
                service.answers = [turn()]
                with service.running(), shop(host_page(service)) as address:
                    context = browser.new_context(
                        color_scheme="dark" if scheme == "dark" else "light",
                        viewport={"width": size[0], "height": size[1]},
                        locale="ru-RU",
                    )
                    page = context.new_page()
                    page.goto(address)
                    open_chat(page)
                    ask(page, "Стиральная машина показывает E20, что делать?")
                    page.locator(f'[data-outcome="{outcome}"]').wait_for()
                    page.locator(".unsent, .live").first.wait_for(state="detached")
                    page.screenshot(path=folder / f"{look}-{outcome}.png")
                    context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
