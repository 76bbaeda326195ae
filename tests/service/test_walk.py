"""The walk through the product works by keyboard only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from settings import Settings
from tenants.desk import first_run
from tests import desk_views
from tests.service.serving import Server, environment, in_force, serving
from tests.service.walk import walk


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A service on an empty data folder, and the path of its one-time link."""
    settings = Settings(data_dir=tmp_path / "data", default_locale="ru", rate_limit_per_minute=0)
    with in_force(settings):
        secret = first_run.open_link()
        with serving(environment(settings)) as server:
            yield server, f"/desk/first-run/{secret}"


def test_the_whole_walk_works_by_keyboard_only(browser: Browser, begun: tuple[Server, str], tmp_path: Path) -> None:
    server, link = begun
    with browser.new_context(bypass_csp=True, locale="ru-RU") as context:
        page = context.new_page()
        page.goto(f"{server.url}{link}")
        expect(page.locator('[name="tenant_id"]')).to_be_visible()
        assert desk_views.faults(page) == []
    walk(browser, server, link, tmp_path)
    assert not [line for line in server.log if " ERROR " in line]
