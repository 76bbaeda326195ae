"""A website's pages as a stream of unread articles, by its sitemap or by its links.

A crawl stays on one host and, where it follows links, below the folder it began in. It reads `robots.txt` first and
skips what it disallows. Content is left to the HTML reader; only addresses are extracted here.
"""

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from html import unescape
from typing import Never
from urllib.parse import urljoin, urlsplit, urlunsplit
from xml.parsers import expat

from protego import Protego

from components.ingest.document import Refusal
from components.ingest.fetch import AGENT, Fetcher, Response, canonical, same_site
from components.ingest.files import RawArticle
from tenants.errors import CallerError, Invalid, TooLarge, UnsupportedMedia

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_MAP = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:urlset|sitemapindex)[\s>]", re.DOTALL
)
_GZIP = b"\x1f\x8b"
_LINK = re.compile(r"<a\s[^<>]*?href\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE)
_BASE = re.compile(r"<base\s[^<>]*?href\s*=\s*[\"']?([^\s\"'<>]+)", re.IGNORECASE)
_NO_PAGE = re.compile(
    r"\.(?:7z|avi|bmp|bz2|css|csv|docx?|eot|epub|exe|gif|gz|ico|iso|jpe?g|js|json|mov|mp[34]|msi|pdf|png|pptx?|rar|rss"
    r"|svg|tar|tgz|ttf|txt|wav|webm|webp|woff2?|xlsx?|xml|zip)\Z",
    re.IGNORECASE,
)
_MAX_QUEUED = 100_000
"""Addresses that a crawl remembers; further ones are not followed."""

_MAX_ROBOTS_LENGTH = 500_000
"""Characters of `robots.txt` that are read; RFC 9309 asks for as many bytes."""

_MAX_RULES = 1_000_000
"""Of all agents together. Protego 0.7 stores a group's rules once for each of its agents: half a megabyte of 20,000
agents and 2,000 rules took it 43 s. One million take one."""

_MAX_DELAY = 10.0


_CLOSED = "User-agent: *\nDisallow: /"
"""For a site whose server fails, or whose rules are too many to read."""


class Robots:
    """The rules for us in a site's `robots.txt` (RFC 9309)."""

    def __init__(self, text: str) -> None:
        text = text[:_MAX_ROBOTS_LENGTH]
        lines = text.lower().splitlines()
        agents = sum("agent" in line for line in lines)
        self._rules = Protego.parse(_CLOSED if agents * (len(lines) - agents) > _MAX_RULES else text)
        self.delay = min(self._rules.crawl_delay(AGENT) or 0.0, _MAX_DELAY)
        """Seconds to wait between two pages."""

    def allows(self, url: str) -> bool:
        """Whether a page may be fetched."""
        return self._rules.can_fetch(url, AGENT)


class Crawl:
    """Pages of one website.

    :param fetcher: how they are fetched; it holds the limits for one page.
    :param pages: the most pages and sitemaps to fetch.
    :param seconds: the most time to spend.
    :param size: the most bytes to fetch.
    :param pause: seconds between two pages, unless the site asks for more.
    """

    def __init__(
        self,
        fetcher: Fetcher | None = None,
        *,
        pages: int = 2_000,
        seconds: float = 1_800.0,
        size: int = 500_000_000,
        pause: float = 0.2,
    ) -> None:
        self.fetcher = fetcher or Fetcher()
        self.pages = pages
        self.seconds = seconds
        self.size = size
        self.pause = pause

    def articles(self, url: str) -> Iterator[RawArticle | Refusal]:
        """The pages that an address leads to: those that a sitemap lists, or the page itself and what it links to.

        A page that cannot be fetched is refused and the others continue; an error of the first page is raised. When a
        limit ends the crawl, the last item is a refusal: `crawl_cut`.
        """
        start = canonical(url)
        robots = self._robots(start)
        first = self._fetched(start, start, robots)
        follows = not _is_map(first)
        folder = first.url.rpartition("/")[0] + "/"
        deadline = time.monotonic() + self.seconds
        waiting, queued = deque([start]), {start}
        pages = size = 0
        while waiting:
            at = waiting.popleft()
            if pages == self.pages or size > self.size or time.monotonic() > deadline:
                yield Refusal(TooLarge("crawl_cut", pages=pages), start)
                return
            pages += 1
            try:
                page = first if at == start else self._next(at, first.url, robots)
                further_urls = _further_urls(page, folder if follows else "")
            except CallerError as error:
                yield Refusal(error, at)
                continue
            size += len(page.data)
            if page.url != at and page.url in queued:
                continue
            queued.add(page.url)
            if not _is_map(page):
                yield RawArticle(page.data, "html", page.url)
            new = [
                url for url in further_urls if url not in queued and same_site(first.url, url) and robots.allows(url)
            ]
            new = new[: _MAX_QUEUED - len(queued)]
            queued.update(new)
            waiting.extend(new)

    def _next(self, url: str, site: str, robots: Robots) -> Response:
        time.sleep(max(self.pause, robots.delay))
        return self._fetched(url, site, robots)

    def _fetched(self, url: str, site: str, robots: Robots) -> Response:
        """A page or a sitemap that the site allows us to fetch."""
        if not robots.allows(url):
            raise Invalid("robots_forbid", url=url)
        page = self.fetcher.fetch(url, site=site)
        if not robots.allows(page.url):
            raise Invalid("robots_forbid", url=page.url)
        if page.status != 200:
            raise Invalid("page_missing", url=url, status=page.status)
        if page.data.startswith(_GZIP):
            page = replace(page, data=self.fetcher.unpacked(page.data, url))
        if page.kind not in _PAGES and not _is_map(page):
            raise UnsupportedMedia("page_unsupported", url=url)
        return page

    def _robots(self, url: str) -> Robots:
        reply = self.fetcher.fetch(urlunsplit((*urlsplit(url)[:2], "/robots.txt", "", "")), site=url)
        if reply.status >= 500:
            return Robots(_CLOSED)
        return Robots(reply.data.decode(errors="replace") if reply.status == 200 else "")


def _is_map(page: Response) -> bool:
    return bool(_MAP.match(page.data[:4_000]))


def _further_urls(page: Response, folder: str) -> tuple[str, ...]:
    """The canonical addresses that a sitemap lists, or those below `folder` that a page links to, if there is one."""
    if _is_map(page):
        return _canonical(sitemap_urls(page.data))
    links = _canonical(page_links(page)) if folder else ()
    return tuple(url for url in links if url.startswith(folder) and not _NO_PAGE.search(urlsplit(url).path))


def _canonical(urls: Iterable[str]) -> tuple[str, ...]:
    """Each valid address once, in order."""
    addresses: dict[str, None] = {}
    for url in urls:
        with suppress(CallerError):
            addresses[canonical(url)] = None
    return tuple(addresses)


def page_links(page: Response) -> list[str]:
    """The addresses that a page's links lead to, in order, as they are written but absolute."""
    text = page.data.decode(errors="replace")
    base = _BASE.search(text)
    links = []
    for match in _LINK.finditer(text):
        try:
            at = urljoin(page.url, unescape(base[1]) if base else "")
            links.append(urljoin(at, unescape(next(filter(None, match.groups()), "")).strip()))
        except ValueError:
            continue
    return links


def sitemap_urls(data: bytes) -> list[str]:
    """The addresses that a sitemap, or an index of sitemaps, holds. Raises `sitemap_invalid` or `xml_doctype`."""
    locations: list[str] = []
    inside: list[str] = []
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:  # noqa: ARG001 - expat's signature
        inside.append(name)
        if name == "loc":
            locations.append("")

    def end(name: str) -> None:  # noqa: ARG001
        inside.pop()

    def add(text: str) -> None:
        if inside and inside[-1] == "loc":
            locations[-1] += text

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, add
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError as broken:
        raise Invalid("sitemap_invalid") from broken
    return [url.strip() for url in locations]


def _refuse_doctype(name: str, system: str | None, public: str | None, internal: bool) -> Never:  # noqa: ARG001
    raise Invalid("xml_doctype")
