"""The widget's files as fetched by browsers."""

import gzip
import re

import httpx
import pytest
from fastapi import FastAPI

from pipelines import problems
from ui import pages


def _client(*sites: str, locale: str = "ru") -> httpx.AsyncClient:
    """Return a client whose language the gate has recognised, and a service with these English sites."""

    async def locale_of_site(key: str) -> str:
        return "en" if key in sites else ""

    problems.caller.set(problems.Caller(locale))

    app = FastAPI()
    app.include_router(pages.router(locale_of_site))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service")


@pytest.mark.parametrize("name", pages.ASSETS)
async def test_a_script_is_sent_compressed_to_any_origin_and_once(name: str) -> None:
    async with _client() as client:
        compressed = await client.get(f"/widget/{name}", headers={"Accept-Encoding": "gzip"})
        plain = await client.get(f"/widget/{name}", headers={"Accept-Encoding": "identity"})
        again = await client.get(f"/widget/{name}", headers={"If-None-Match": compressed.headers["etag"]})
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.content == plain.content
    assert len(gzip.compress(plain.content)) < len(plain.content) / 2
    assert compressed.headers["access-control-allow-origin"] == "*"
    assert compressed.headers["content-type"].startswith("text/javascript")
    assert (again.status_code, again.content) == (304, b"")


async def test_the_loader_names_the_chat_by_digest_for_browser_caches() -> None:
    async with _client() as client:
        loader = await client.get("/widget/loader.js")
        chat = await client.get("/widget/chat.js")
    assert chat.headers["etag"].strip('"')[:12] in loader.text
    assert "immutable" in chat.headers["cache-control"]
    assert "immutable" not in loader.headers["cache-control"]


async def test_a_chat_page_names_its_site_and_nothing_else_gets_in() -> None:
    async with _client(locale="en") as client:
        page = await client.get("/chat/site_1")
        refused = await client.get('/chat/x"><script>')
    assert 'data-site="site_1"' in page.text
    assert '<html lang="en">' in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert refused.status_code in {404, 422}


@pytest.mark.parametrize(
    ("key", "asked", "expected"), [("site_1", "de", "en"), ("site_1", "de, ru;q=0.5", "ru"), ("site_2", "de", "ru")]
)
async def test_a_chat_page_in_an_unknown_language_uses_that_of_its_site(key: str, asked: str, expected: str) -> None:
    async with _client("site_1") as client:
        page = await client.get(f"/chat/{key}", headers={"Accept-Language": asked})
    assert f'<html lang="{expected}">' in page.text
    assert f'data-locale="{expected}"' in page.text


async def test_demo_shop_speaks_the_browsers_language_if_set_up() -> None:
    russian, english = pages.DEMO_SITES["ru"], pages.DEMO_SITES["en"]
    async with _client() as client:
        assert (await client.get("/demo")).status_code == 404
    for sites, language, expected in (
        ((russian,), "en", "ru"),
        ((english,), "ru", "en"),
        ((russian, english), "en", "en"),
        ((russian, english), "ru", "ru"),
    ):
        async with _client(*sites, locale=language) as client:
            page = await client.get("/demo")
        assert f'<html lang="{expected}">' in page.text
        assert f'data-site="{pages.DEMO_SITES[expected]}" data-locale="{expected}"' in page.text
        assert "style-src 'sha256-" in page.headers["content-security-policy"]


@pytest.mark.parametrize(("language", "title"), [("ru", "Рабочее место"), ("en", "API documentation")])
async def test_home_leads_to_what_there_is(language: str, title: str) -> None:
    async with _client(*pages.DEMO_SITES.values(), locale=language) as client:
        page = await client.get("/")
    assert re.findall(r'href="(/\w+)"', page.text) == ["/desk", "/demo", "/docs"]
    assert title in page.text
    async with _client() as client:
        assert "/demo" not in (await client.get("/")).text
