"""Every page of the desk in a browser: the list used by all tests of layout, reading and cost."""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import violations

VIEWS: Mapping[str, tuple[str, ...]] = {
    "/desk/sign-in": ("", "?next=/desk#sso"),
    "/desk/sso": ("?tenant={tenant_id}",),
    "/desk/account": ("",),
    "/desk/people": ("",),
    "/desk/tenants": ("",),
    "/desk/tenants/one": ("?id={tenant_id}",),
    "/desk/invitation/{secret}": ("",),
    "/desk/welcome": ("",),
    "/desk": ("", "?view=mine", "?view=all", "?view=all&q={words}"),
    "/desk/chat/{chat_id}": ("",),
    "/desk/chat/{chat_id}/similar": ("",),
    "/desk/turns/{turn_id}": ("",),
    "/desk/replies": ("",),
    "/desk/gaps": ("", "?q={words}", "?status=dismissed", "#picked", "?closed=1&unanswered=2"),
    "/desk/gaps/{gap_id}": ("",),
    "/desk/articles": ("",),
    "/desk/articles/new": ("?gap={gap_id}",),
    "/desk/articles/{article_id}": ("",),
    "/desk/articles/{article_id}/preview": ("",),
    "/desk/stale": ("?cited=3000&older=30",),
    "/desk/contradictions": ("",),
    "/desk/rejected": ("",),
    "/desk/documents": ("", "?q={words}&trust=", "?stale=true"),
    "/desk/documents/add": ("",),
    "/desk/documents/one": tuple(
        f"?id={{doc_id}}&show={part}" for part in ("chunks", "properties", "versions&version=1", "ties")
    ),
    "/desk/jobs": ("",),
    "/desk/jobs/{job_id}": ("",),
    "/desk/insight": ("?days=90",),
    "/desk/audit": ("", "?q={words}"),
    "/desk/reading": ("",),
    "/desk/evaluation": ("",),
    "/desk/evaluation/questions": ("",),
    "/desk/evaluation/measured": ("",),
    "/desk/playground": ("", "#asked"),
    "/desk/settings": ("", "#refused"),
    "/desk/settings/hours": ("", "?site={key}"),
    "/desk/settings/offers": ("",),
    "/desk/settings/synonyms": ("",),
    "/desk/settings/sites": ("",),
    "/desk/settings/sites/{key}": ("",),
    "/desk/settings/tools": ("",),
    "/desk/settings/tools/{name}": ("", "#tried"),
    "/desk/settings/webhooks": ("",),
    "/desk/settings/tokens": ("",),
    "/desk/settings/models": ("",),
    "/desk/settings/sign-in": ("",),
    "/desk/settings/changes": ("",),
}
"""Routes with their queries, which may contain names of stored objects. `#` may be followed by an act of `ACTS`."""

ERRORS = {
    "/desk/chat/{chat_id}": "/desk/chat/none",
    "/desk/sso/{tenant_id}": "/desk/sso/none",
    "/desk/sso-callback/{tenant_id}": "/desk/sso-callback/none?state=none&code=none",
    "/desk/first-run/{secret}": "/desk/first-run/none",
}
"""Addresses that show an error. Signing in elsewhere shows no other page here; `test_first_run` sees a first run."""

ELSEWHERE = {"/desk/live": "a stream of events"}
"""Routes that show no page."""

OF_INSTALLATION = frozenset({"/desk/tenants", "/desk/tenants/one?id={tenant_id}"})
"""Pages for admins of the installation only."""

WIDE: ViewportSize = {"width": 1440, "height": 900}
MIDDLE: ViewportSize = {"width": 1024, "height": 768}
PHONE: ViewportSize = {"width": 390, "height": 844}
OPENED = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
QUESTION = "Что означает код E20?"


def _ask(page: Page) -> None:
    page.locator('[name="question"]').fill(QUESTION)
    page.locator('[name="both"]').check()
    page.locator("main form .main").first.click()
    expect(page.locator("#answer-a, #answer-1").first).to_be_visible()


def _save_what_does_not_fit(page: Page) -> None:
    page.locator('[name="top_k"]').fill('"><img src=x onerror=hit()>')
    page.locator("#answers .main").click()
    expect(page.locator("#top_k-fault")).to_be_visible()


def _try_tool(page: Page) -> None:
    page.locator('[name="question"]').fill("Где накладная 4471823?")
    page.locator("#test button").click()
    expect(page.locator('[role="status"]').first).to_be_visible()


def _pick_gap(page: Page) -> None:
    page.locator(".gap input[type=checkbox]").first.check()
    expect(page.locator("#bulk")).to_be_visible()


ACTS: Mapping[str, Callable[[Page], None]] = {
    "asked": _ask,
    "refused": _save_what_does_not_fit,
    "tried": _try_tool,
    "picked": _pick_gap,
}
"""Actions on a page that make it show more."""


def names() -> list[str]:
    """Return every page, with names in its address: the ids of tests."""
    return [f"{route}{one}" for route, asked in VIEWS.items() for one in asked]


def address(name: str, stored: Mapping[str, str]) -> str:
    """Return the address of a page.

    :param stored: values for the names.
    """
    return name.format(**{key: quote(value, safe="") for key, value in stored.items()})


def act(page: Page, name: str) -> None:
    """Perform the action of a page."""
    if done := ACTS.get(name.partition("#")[2]):
        done(page)


def faults(page: Page) -> list[str]:
    """Return axe-core's violations, wide and light or narrow and dark, and screen sizes that the page overflows.

    The page is dark and narrow afterwards, and the content security policy must be off.
    """
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    page.evaluate(OPENED)
    found = [f"light: {one}" for one in violations(page)]
    for size in (WIDE, MIDDLE, PHONE):
        page.set_viewport_size(size)
        beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [f"{beyond} px too wide for {size['width']}"] * (beyond > 0)
    page.emulate_media(color_scheme="dark")
    return found + [f"dark: {one}" for one in violations(page)]
