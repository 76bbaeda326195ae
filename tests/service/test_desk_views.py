"""Every page of the desk in a real browser: accessible, responsive, and safe against scripts in texts."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from lxml import html
from playwright.sync_api import Browser, BrowserContext, Page, expect

import app
from pipelines import desk_gate
from settings import Settings
from tenants.desk import operator_sessions
from tenants.desk.operators import Operator
from tests import desk, desk_hostile, desk_shop, desk_views
from tests.service.serving import Server, in_force

READ = """() => {
  document.querySelectorAll('details').forEach(one => { one.open = true; });
  document.querySelectorAll('time, [data-needs-script], #link, .later').forEach(one => one.remove());
  return document.body.innerText;
}"""
"""Returns the visible text of a page, without times, which scripts rewrite, and without elements for scripts only."""

CLEAN = {"/desk/sign-in", "/desk/sso", "/desk/documents/add", "/desk/playground", "/desk/settings/models"}
"""Routes without texts of customers or authors."""

FORBIDDEN = {"script", "img", "iframe", "object", "embed", "style", "link", "video", "audio", "base", "meta", "math"}
TYPED = ".//textarea | .//input[not(@type) or @type='text' or @type='search' or @type='url' or @type='password']"
NUMBER = re.compile(r"\d+([.,\xa0 ]\d+)*")


@contextmanager
def browsing(
    browser: Browser, server: Server, who: Operator, *, scripts: bool = True, bypass_csp: bool = True
) -> Iterator[BrowserContext]:
    """Open a browser with a signed-in user."""
    with browser.new_context(
        locale="ru-RU",
        timezone_id="Europe/Moscow",
        java_script_enabled=scripts,
        bypass_csp=bypass_csp,
        reduced_motion="reduce",
    ) as context:
        context.set_default_timeout(20_000)
        address = server.url.replace("http", "https")
        secret = desk.secret_of(who)
        context.add_cookies(
            [{"name": desk_gate.COOKIE, "value": secret, "url": address, "secure": True, "httpOnly": True}]
        )
        yield context


def who_opens(name: str) -> Operator:
    """Return the user of the shop who may see a page."""
    return desk.root() if name in desk_views.OF_INSTALLATION else desk_shop.operator()


@pytest.fixture(scope="module")
def shop(installation: Settings, ingest: Callable[..., httpx.Response]) -> Mapping[str, str]:
    with in_force(installation):
        return desk_shop.fill(installation, lambda *given: ingest(*given).raise_for_status())


@pytest.fixture(scope="module")
def hostile(installation: Settings, ingest: Callable[..., httpx.Response]) -> Mapping[str, str]:
    with in_force(installation):
        return desk_hostile.fill(installation, lambda *given: ingest(*given).raise_for_status())


@pytest.fixture(scope="module")
def reading(browser: Browser, server: Server, shop: Mapping[str, str]) -> Iterator[Callable[[str, bool], Page]]:
    """Return a function that opens a page of `desk_views` for a user with access, with or without scripts."""
    with ExitStack() as stack:
        opened: dict[tuple[str, bool], Page] = {}

        def read(name: str, scripts: bool) -> Page:
            # All at once: then a list of sessions is the same on all of them.
            for who in () if opened else (desk_shop.operator(), desk.root()):
                for with_scripts in (True, False):
                    context = stack.enter_context(browsing(browser, server, who, scripts=with_scripts))
                    opened[who.login, with_scripts] = context.new_page()
            page = opened[who_opens(name).login, scripts]
            page.goto(f"{server.url}{desk_views.address(name, shop)}")
            desk_views.act(page, name)
            expect(page.locator("h1").first).to_be_visible()
            return page

        yield read


def test_every_page_is_looked_at(installation: Settings) -> None:
    """Every page must be listed in `desk_views`; axe, queries, hostile texts and reading then cover it."""
    routes = app.create_app(installation).state.open_routes
    pages = {route.path for route in routes if route.page and route.method == "GET"}
    shown = {path for path in pages if path.startswith("/desk")}
    assert shown == {*desk_views.VIEWS, *desk_views.ERRORS, *desk_views.ELSEWHERE}


@pytest.mark.parametrize("name", [*desk_views.names(), *desk_views.ERRORS.values()])
def test_everybody_can_read_a_page_with_scripts_or_without_on_any_screen(
    reading: Callable[[str, bool], Page], name: str
) -> None:
    page = reading(name, True)
    assert desk_views.faults(page) == []
    with_scripts = lines(page)
    without = reading(name, False)
    without.set_viewport_size(desk_views.PHONE)
    assert lines(without) == with_scripts


def test_the_table_of_evaluation_runs_fits_a_phone(reading: Callable[[str, bool], Page]) -> None:
    page = reading("/desk/evaluation", True)
    page.set_viewport_size(desk_views.PHONE)
    table = page.locator('[aria-label="Качество по прогонам, % вопросов: таблица"]')
    assert table.evaluate("region => region.scrollWidth - region.clientWidth") == 0
    figure = table.locator("td.figure").last
    assert figure.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Подтверждено: "'


def lines(page: Page) -> list[str]:
    """Return the lines of a page, sorted: which of two sessions is the current one differs, and what is cached."""
    return sorted(NUMBER.sub("0", str(page.evaluate(READ))).replace(" из кеша", "").splitlines())


class Attacked:
    """A page, and the hostile scripts that have run on it."""

    def __init__(self, page: Page) -> None:
        self.page, self.hits = page, list[str]()
        page.expose_function("hit", lambda *_: self.hits.append("hit"))
        page.on("dialog", lambda dialog: self.hits.append(dialog.message))
        page.on("pageerror", lambda fault: self.hits.append(str(fault)))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => window.hit(event.violatedDirective));"
        )


@pytest.fixture(scope="module")
def attacked(browser: Browser, server: Server, hostile: Mapping[str, str]) -> Iterator[Callable[[str], Attacked]]:
    """Return a function that opens a page with hostile texts for a user with access."""
    with ExitStack() as stack:
        opened: dict[str, Attacked] = {}

        def attack(name: str) -> Attacked:
            of_installation = name in desk_views.OF_INSTALLATION
            who = desk.root() if of_installation else desk_hostile.operator()
            if who.login not in opened:
                page = stack.enter_context(browsing(browser, server, who, bypass_csp=False)).new_page()
                opened[who.login] = Attacked(page)
            attacked = opened[who.login]
            attacked.hits.clear()
            attacked.page.goto(f"{server.url}{desk_views.address(name, hostile)}")
            desk_views.act(attacked.page, name)
            return attacked

        yield attack


@pytest.mark.parametrize("name", desk_views.names())
def test_no_text_of_a_customer_or_an_author_runs_anything(attacked: Callable[[str], Attacked], name: str) -> None:
    shown = attacked(name)
    page, (route, _, act) = shown.page, name.partition("#")
    if page.locator("#link").count():
        expect(page.locator("#link")).to_have_text("на связи")
    page.evaluate(desk_views.OPENED)
    expect(page.locator("h1").first).to_be_visible()
    made = page.evaluate("[...document.body.querySelectorAll('*:not(svg.plot, svg.plot *)')].map(one => one.localName)")
    assert not set(made) & {*FORBIDDEN, "svg"}
    attributes = page.evaluate("[...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames())")
    assert not [one for one in attributes if one.startswith(("on", "style"))]
    targets = page.evaluate("[...document.querySelectorAll('a, form')].map(one => one.href ?? one.action)")
    assert all(target.startswith(("http://", "https://")) for target in targets)
    assert ("hit(" in page.locator("main").inner_html()) == (act == "asked" or route.partition("?")[0] not in CLEAN)
    assert shown.hits == []


def test_whatever_is_typed_into_a_form_comes_back_as_text(server: Server, hostile: Mapping[str, str]) -> None:
    """Submit every form of every page with HTML in each of its fields."""
    secret = desk.secret_of(desk_hostile.operator())
    headers = {"Cookie": f"{desk_gate.COOKIE}={secret}", **desk.SAME_ORIGIN}
    sent, reflected = set[str](), 0
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        for name in desk_views.names():
            page = client.get(desk_views.address(name.partition("#")[0], hostile))
            for form in parsed(page).forms:
                typed = [one.get("name") for one in form.xpath(TYPED) if one.get("name")]
                if not typed or form.action in sent or form.get("enctype"):
                    continue
                sent.add(form.action)
                fields = {**dict(form.form_values()), **dict.fromkeys(typed, desk_hostile.WORST)}
                if form.method == "POST":
                    answer = client.post(form.action, data={**fields, "csrf": operator_sessions.verify(secret).csrf})
                else:
                    answer = client.get(form.action, params=fields)
                if answer.is_redirect:
                    answer = client.get(answer.headers["location"])
                assert not injected(answer), form.action
                reflected += desk_hostile.WORST not in answer.text and "hit()" in answer.text
    assert len(sent) > 25
    assert reflected > 20


def parsed(answer: httpx.Response) -> html.HtmlElement:
    """Parse a page."""
    return html.document_fromstring(answer.content)


def injected(answer: httpx.Response) -> list[str]:
    """Return elements and attributes that no page of the desk has."""
    found = []
    for one in parsed(answer).body.iter("*"):
        if one.tag in FORBIDDEN - {"script"} or (one.tag == "script" and not one.get("src")):
            found.append(str(one.tag))
        found += [str(name) for name in one.attrib if str(name).startswith(("on", "style"))]
    return found
