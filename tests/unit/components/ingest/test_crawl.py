"""A site is crawled by its sitemap or its links, as far as it permits."""

import gzip

import pytest

from components.ingest.crawl import Crawl, Robots
from components.ingest.document import Refusal
from components.ingest.fetch import Fetcher
from components.ingest.files import RawArticle
from tenants.core.errors import CallerError
from tests.unit.components.ingest.site import Answer, Site, page, serving

XML = {"Content-Type": "application/xml"}


def crawl(**limits: float) -> Crawl:
    fetcher = Fetcher(permitted=lambda address: address == "127.0.0.1")
    return Crawl(fetcher, pause=0, **limits)  # type: ignore[arg-type]


def sitemap(site: Site, *paths: str, kind: str = "urlset") -> Answer:
    sitemap_urls = "".join(f"<url><loc>\n {site.url}{path} </loc><lastmod>2026</lastmod></url>" for path in paths)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return 200, XML, f'<?xml version="1.0"?><!-- a --><{kind} xmlns="{space}">{sitemap_urls}</{kind}>'.encode()


def read(site: Site, path: str, one: Crawl | None = None) -> tuple[list[str], dict[str, str]]:
    """Return the paths of the pages read, and the codes of those refused."""
    results = list((one or crawl()).articles(site.url + path))
    pages = [article.source.removeprefix(site.url) for article in results if isinstance(article, RawArticle)]
    refused = {each.source.removeprefix(site.url): each.error.code for each in results if isinstance(each, Refusal)}
    return pages, refused


def test_links_below_the_first_page_are_followed_once() -> None:
    links = """<a href="a.html">A</a> <a class=x href='/help/b?x=1&amp;y=2#part'>B</a> <A HREF=a.html>A again</A>
    <a href="/shop/">out of the folder</a> <a href="http://elsewhere.example/help/">another host</a>
    <a href="mailto:a@example.com">mail</a> <a href="photo.png">photo</a> <a href="http://[">broken</a>"""
    with serving({"/help/": page(links), "/help/a.html": page('<a href="./">back</a><a href="gone">gone</a>')}) as site:
        site.pages["/help/b?x=1&y=2"] = page("B")
        pages, refused = read(site, "/help/")
    assert pages == ["/help/", "/help/a.html", "/help/b?x=1&y=2"]
    assert refused == {"/help/gone": "page_missing"}
    assert "/shop/" not in site.asked
    assert site.asked[0] == "/robots.txt"


def test_a_sitemap_is_followed_and_so_are_those_that_it_lists() -> None:
    with serving({"/a": page('<a href="/b">not followed</a>'), "/c": page("C")}) as site:
        site.pages["/sitemap.xml"] = sitemap(site, "/one.xml", "/two.xml.gz", "/bad.xml", kind="sitemapindex")
        site.pages["/one.xml"] = sitemap(site, "/a", "/a", "/photo")
        packed = sitemap(site, "/c")
        site.pages["/two.xml.gz"] = (200, {"Content-Type": "application/gzip"}, gzip.compress(packed[2]))
        site.pages["/bad.xml"] = (200, XML, b"<urlset><url><loc>broken")
        site.pages["/photo"] = (200, {"Content-Type": "image/png"}, b"png")
        pages, refused = read(site, "/sitemap.xml")
    assert pages == ["/a", "/c"]
    assert refused == {"/photo": "page_unsupported", "/bad.xml": "sitemap_invalid"}


def test_a_sitemap_has_no_doctype() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE u [<!ENTITY a "aa">]><urlset><url><loc>&a;</loc></url></urlset>'
    with (
        serving({"/": page('<a href="/map.xml">m</a>'), "/map.xml": (200, XML, bomb)}) as site,
        pytest.raises(CallerError),
    ):
        list(crawl().articles(site.url + "/map.xml"))


def test_pages_disallowed_by_robots_txt_are_not_fetched() -> None:
    robots = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private\nDisallow: /*.php$")
    links = '<a href="/private/a">a</a><a href="/b.php">b</a><a href="/c">c</a>'
    with serving({"/robots.txt": robots, "/": page(links), "/c": page("C"), "/private/a": page("A")}) as site:
        assert read(site, "/")[0] == ["/", "/c"]
        assert not {"/private/a", "/b.php"} & set(site.asked)
        with pytest.raises(CallerError, match="robots_forbid"):
            list(crawl().articles(site.url + "/private/a"))
        site.pages["/robots.txt"] = (503, {}, b"")
        with pytest.raises(CallerError, match="robots_forbid"):
            list(crawl().articles(site.url + "/"))


def test_a_crawl_that_is_stopped_fetches_no_further_sitemap() -> None:
    with serving({}) as site:
        site.pages["/sitemap.xml"] = sitemap(site, "/one.xml", "/two.xml", kind="sitemapindex")
        site.pages["/one.xml"] = site.pages["/two.xml"] = sitemap(site)
        found = crawl().articles(site.url + "/sitemap.xml", stopped=lambda: "/one.xml" in site.asked)
        assert list(found) == []
        assert "/two.xml" not in site.asked


@pytest.mark.parametrize("limits", [{"pages": 3}, {"size": 200}, {"seconds": -1.0}])
def test_an_endless_site_is_truncated_and_reported(limits: dict[str, float]) -> None:
    endless = {f"/{at}": page(f'<a href="/{at + 1}">more</a>') for at in range(50)}
    with serving({"/": page('<a href="/0">more</a>'), **endless}) as site:
        pages, refused = read(site, "/", crawl(**limits))
    assert len(pages) <= 3
    assert list(refused.values()) == ["crawl_cut"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/", True), ("/a", False), ("/a/b", True), ("/a/b/c.pdf", False), ("/x/y/print", False), ("/x/y/printer", True)],
)
def test_the_longest_rule_of_robots_txt_decides(path: str, allowed: bool) -> None:
    text = "# note\nUser-Agent: *\nDisallow: /a # here\nAllow: /a/b\nDisallow: /*/c.pdf$\nDisallow: /x/*/print$\n"
    assert Robots(text).allows(f"https://shop.example{path}") is allowed


def test_the_robots_group_that_names_us_takes_precedence() -> None:
    text = "user-agent: *\ndisallow: /\n\nuser-agent: other\nuser-agent: opora\ndisallow: /b\ncrawl-delay: 2.5\n"
    robots = Robots(text)
    assert (robots.allows("https://shop.example/a"), robots.allows("https://shop.example/b")) == (True, False)
    assert robots.delay == 2.5
    assert not Robots(text.replace("opora", "another")).allows("https://shop.example/a")
    assert Robots("crawl-delay: 5\nuser-agent: *\ncrawl-delay: 999999\ndisallow:").delay == 10
    assert Robots("").delay == 0


def test_a_disallowed_page_is_recognised_in_any_spelling() -> None:
    robots = Robots("user-agent: *\ndisallow: /закрыто")
    assert not robots.allows("https://shop.example/%D0%B7%D0%B0%D0%BA%D1%80%D1%8B%D1%82%D0%BE/1")


def test_a_rule_of_many_wildcards_is_matched_quickly() -> None:
    robots = Robots("user-agent: *\ndisallow: /" + "*a" * 5_000 + "$")
    assert not robots.allows("https://shop.example/" + "a" * 6_000)


def test_too_many_robots_rules_close_the_site() -> None:
    agents = "".join(f"user agent: a{number}\n" for number in range(15_000))
    rules = ("allow: /*123z", "disalow: /*123z", "disallow /agent*123z", "dissalow: /*user-agent")
    for text in (agents + "disallow: /a\n" * 15_000, *(f"user-agent: *\n{(rule + chr(10)) * 5_001}" for rule in rules)):
        assert not Robots(text).allows("https://shop.example/b")
    commented = "user-agent: *\n" + "# disallow: /\n\n" * 5_001
    assert Robots(commented).allows("https://shop.example/b")
