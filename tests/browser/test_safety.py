"""Isolation between widget and page, and from hostile texts."""

from collections import Counter
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import ask, host_page, open_chat
from tests.browser.fake_service import SITE, FakeService, shop
from tests.browser.payloads import PAYLOADS
from tests.browser.turns import EXCERPT, OUTCOMES, PASSAGE, citation, turn

HOSTILE = """
* { font-size: 40px !important; color: red !important; display: block !important; border: 9px solid lime !important; }
opora-chat, opora-chat * { position: static !important; transform: rotate(20deg) !important; opacity: .1 !important; }
:root { --accent: red; --surface: red; --text: red; font-size: 3px; }
button { all: unset !important; visibility: hidden !important; } section { display: none !important; }
"""


def _watch(page: Page) -> list[str]:
    """Record all script activity: calls of `hit`, dialogs, errors of scripts."""
    hits: list[str] = []
    page.expose_function("hit", lambda *_: hits.append("hit"))

    def dismiss(dialog: Dialog) -> None:
        hits.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("popup", lambda popup: hits.append(popup.url))
    return hits


def test_no_text_runs_anything(page: Page, service: FakeService, address: str) -> None:
    hits = _watch(page)
    service.begin()
    for text in PAYLOADS:
        cited, source = citation(1, text, text, text, url="javascript:hit()")
        cited["heading"] = text
        article = {
            "doc_id": "a",
            "title": text,
            "heading": text,
            "url": "javascript:hit()",
            "snippet": text,
            "score": 0.1,
        }
        service.add("customer", text)
        service.say(
            turn(
                "answered",
                f"{text} [1]",
                verified=True,
                citations=[cited],
                sources=[source],
                notice=text,
                missing=[text],
            )
        )
        service.say(turn("refused", text, articles=[article]))
        service.add("operator", text, name=text)
        service.add("system", kind="event", name=text, body={"event": "joined", "name": text})
        file = {"file_id": "f", "name": text, "size": 1, "media_type": "text/html"}
        service.add("customer", text, kind="file", body={"file": file})
    service.say(turn("clarify", "?", clarification={"options": list(PAYLOADS[:10])}))
    page.goto(address)
    open_chat(page)
    page.locator('[data-outcome="clarify"]').wait_for()
    expect(page.locator(".message").nth(5 * len(PAYLOADS) - 1)).to_be_attached()
    made = Counter(
        page.locator(".messages").evaluate("all => [...all.querySelectorAll('*')].map(one => one.localName)")
    )
    assert not made.keys() & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "style",
        "link",
        "form",
        "video",
        "audio",
        "base",
    }
    links = page.locator(".messages").evaluate("all => [...all.querySelectorAll('a')].map(one => one.protocol)")
    assert set(links) <= {"https:", "http:", "mailto:", "tel:"}
    attributes = page.locator(".messages").evaluate(
        "all => [...all.querySelectorAll('*')].flatMap(one => one.getAttributeNames())"
        ".filter(name => /^on|style/.test(name))"
    )
    assert attributes == []
    page.locator(".cite").last.click()
    page.locator(".passage").wait_for()
    assert hits == []


def test_only_an_address_that_is_spelt_out_is_a_link(page: Page, service: FakeService, address: str) -> None:
    service.begin()
    for text in (
        "[a](https://shop.example/a?b=1&c=2) https://shop.example/b www.shop.example/c <https://shop.example/d>",
        "<http:/evil.example/x> [a [b]](https:evil.example) ![c](http:/evil.example/x)",
        "[d](<ht\ttp:/evil.example>) [e](http\\://evil.example)\n\n[f]\n\n[f]: http\\://evil.example",
    ):
        service.say(turn("answered", text))
    page.goto(address)
    open_chat(page)
    expect(page.locator(".message").nth(2)).to_be_attached()
    links = page.locator(".messages .text").evaluate_all(
        "all => all.flatMap(one => [...one.querySelectorAll('a')].map(a => a.href))"
    )
    shop = "https://shop.example"
    assert links == [f"{shop}/a?b=1&c=2", f"{shop}/b", "http://www.shop.example/c", f"{shop}/d"]


def test_a_strict_page_has_nothing_to_complain_of(page: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["answered"](), OUTCOMES["low_confidence"]()]
    policy = (
        f"default-src 'none'; script-src {service.url}; connect-src {service.url}; style-src 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'"
    )
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(f"{urlsplit(request.url).scheme}://{urlsplit(request.url).netloc}"))
    page.add_init_script(
        "window.violations = []; document.addEventListener('securitypolicyviolation', (event) => "
        "window.violations.push(event.violatedDirective + ' ' + event.blockedURI));"
    )
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    html = f'<!doctype html><body><script src="{service.url}/widget/loader.js" data-site="{SITE}"></script>'
    with shop(html, policy=policy) as address:
        page.goto(address)
        open_chat(page)
        for outcome in ("answered", "low_confidence"):
            ask(page, "Вопрос")
            page.locator(f'[data-outcome="{outcome}"]').wait_for()
        page.locator(".cite").first.click()
        page.locator(".passage mark").wait_for()
        assert page.evaluate("window.violations") == []
        assert faults == []
        assert asked == {service.url, address.rstrip("/")}


@pytest.mark.parametrize("path", ["/chat/site-key", "/demo"])
def test_our_own_pages_keep_their_policy(page: Page, service: FakeService, path: str) -> None:
    service.answers = [OUTCOMES["answered"]()]
    page.add_init_script(
        "window.violations = []; document.addEventListener('securitypolicyviolation', (event) => "
        "window.violations.push(event.violatedDirective + ' ' + event.blockedURI));"
    )
    answer = page.goto(service.url + path)
    assert answer is not None
    assert "require-trusted-types-for 'script'" in answer.headers["content-security-policy"]
    if path == "/demo":
        page.locator(".launcher").click()
    page.locator("textarea").wait_for()
    ask(page, "Ошибка E20")
    page.locator('[data-outcome="answered"]').wait_for()
    assert page.evaluate("window.violations") == []


_LOOK = """root => ['.panel', '.bubble', 'textarea', '.icon.send', 'h2', '.frame'].map(name => {
  const one = root.shadowRoot.querySelector(name), style = getComputedStyle(one), box = one.getBoundingClientRect();
  return [name, style.fontSize, style.color, style.backgroundColor, style.display, style.borderTopWidth, style.opacity,
          style.visibility, Math.round(box.width), Math.round(box.x - innerWidth)];
})"""


def test_the_page_cannot_change_the_widget(page: Page, service: FakeService) -> None:
    service.begin()
    service.say(turn("answered", "Текст"))
    looks = []
    for style in ("", HOSTILE):
        with shop(host_page(service, style=style)) as address:
            page.goto(address)
            open_chat(page)
            page.locator("[data-outcome]").wait_for()
            page.evaluate("document.activeElement.blur()")
            page.locator("h2").first.click()
            looks.append(page.locator("opora-chat").evaluate(_LOOK))
    assert looks[0] == looks[1]


_PAGE = """() => [...document.querySelectorAll('main, main *')].map(one => {
  const box = one.getBoundingClientRect(), style = getComputedStyle(one);
  return [one.localName, box.x, box.y, box.width, box.height, style.color, style.fontSize, style.display];
})"""


def test_the_widget_changes_nothing_of_the_page(page: Page, service: FakeService) -> None:
    body = "<h1>Магазин</h1><p>Текст <button>Купить</button></p><section class=panel><h2>Раздел</h2></section>"
    style = "body { display: grid; gap: 20px } body > :last-child { margin: 0 }"
    looks = []
    for html in (host_page(service, body, style).split("<script")[0], host_page(service, body, style)):
        with shop(html) as address:
            page.goto(address)
            if "loader.js" in html:
                open_chat(page)
            looks.append(page.evaluate(_PAGE))
    assert looks[0] == looks[1]
    assert page.evaluate("Object.keys(window).filter(name => /^_?(opora|lit)/i.test(name))") == ["litHtmlVersions"]


def test_the_exact_passage_survives_characters_beyond_the_basic_plane(
    page: Page, service: FakeService, address: str
) -> None:
    service.begin()
    cited, source = citation(1, "Т", EXCERPT, "🙂🙂 " + PASSAGE)
    service.say(turn("answered", "Текст [1]", verified=True, citations=[cited], sources=[source]))
    page.goto(address)
    open_chat(page)
    page.locator(".cite").first.click()
    expect(page.locator(".passage mark")).to_have_text(EXCERPT)
