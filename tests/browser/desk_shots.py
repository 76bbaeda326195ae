"""Screenshots of every page of the desk for people to look at: `python -m tests.browser.desk_shots FOLDER [WORDS]`.

Each page with a month's work on it and, where it differs, with none, on three screens, in both schemes and languages.
WORDS: only pages whose address holds one of them.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from pipelines import pages
from settings import Settings
from tenants.access.tokens import issue
from tenants.core.json import Json
from tests import desk, desk_shop, desk_views
from tests.browser.conftest import launched
from tests.service.serving import Server, environment, in_force, serving

Look = tuple[str, Literal["light", "dark"], int, int, str]
LOOKS: tuple[Look, ...] = (
    ("wide-light-ru", "light", 1440, 900, "ru-RU"),
    ("wide-dark-en", "dark", 1440, 900, "en-GB"),
    ("middle-dark-ru", "dark", 1024, 768, "ru-RU"),
    ("phone-light-ru", "light", 390, 844, "ru-RU"),
    ("phone-dark-en", "dark", 390, 844, "en-GB"),
)
EMPTY_LOOKS = (LOOKS[0], LOOKS[3])


def main(folder: Path, words: list[str]) -> None:
    """Take all screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as data:
        settings = Settings(data_dir=Path(data), default_locale="ru", rate_limit_per_minute=0)
        with in_force(settings), serving(environment(settings)) as server:

            def ingest(tenant_id: str, documents: list[dict[str, Json]]) -> None:
                token = issue(settings, tenant_id, scopes=("ingest",), subject="anna", ttl_seconds=600)
                headers = {"Authorization": f"Bearer {token}"}
                url = f"{server.url}/ingest/run"
                httpx.post(url, json={"documents": documents}, headers=headers, timeout=60).raise_for_status()

            stored = desk_shop.fill(settings, ingest)
            # Before Playwright keeps an event loop running: no query may run on one.
            admin, root, newcomer = (
                desk.secret_of(one()) for one in (desk_shop.operator, desk.root, desk_shop.newcomer)
            )
            names = [*desk_views.names(), *desk_views.ERRORS.values()]
            names = [one for one in names if not words or any(word in one for word in words)]
            with sync_playwright() as playwright:
                browser = launched(playwright)
                of_tenant = [one for one in names if one not in desk_views.OF_INSTALLATION]
                for look in LOOKS:
                    _shoot(
                        browser,
                        server,
                        folder,
                        look,
                        admin,
                        {one: desk_views.address(one, stored) for one in of_tenant},
                    )
                    _shoot(
                        browser,
                        server,
                        folder,
                        look,
                        root,
                        {one: desk_views.address(one, stored) for one in names if one not in of_tenant},
                    )
                for look in EMPTY_LOOKS:
                    empty = {f"empty{one}": one for one in of_tenant if "{" not in one and "#" not in one}
                    _shoot(browser, server, folder, look, newcomer, empty)
                browser.close()


def _shoot(browser: Browser, server: Server, folder: Path, look: Look, secret: str, views: Mapping[str, str]) -> None:
    label, scheme, width, height, locale = look
    address = server.url.replace("http", "https")
    with browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        locale=locale,
        timezone_id="Europe/Moscow",
        reduced_motion="reduce",
    ) as context:
        context.add_cookies([{"name": pages.COOKIE, "value": secret, "url": address, "secure": True, "httpOnly": True}])
        page = context.new_page()
        for name, path in views.items():
            page.goto(f"{server.url}{path}")
            expect(page.locator("h1").first).to_be_visible()
            desk_views.act(page, name)
            if page.locator("#link").count():
                expect(page.locator("#link")).not_to_be_empty()
            file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
            page.screenshot(path=folder / f"{file}.{label}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
