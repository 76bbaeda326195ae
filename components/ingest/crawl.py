"""A website's pages as a stream of unread articles, by its sitemap or by its links.

A crawl stays on one host and, where it follows links, below the folder it began in. It reads `robots.txt` first and
skips what it disallows. Content is left to the HTML reader; only addresses are extracted here.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import unescape
from urllib.parse import urljoin, urlsplit, urlunsplit
from xml.parsers import expat

from protego import Protego

from components.ingest.document import Refusal
from components.ingest.fetch import AGENT, Fetcher, Response, canonical, same_site
from components.ingest.files import RawArticle
from tenants.core import fairness
from tenants.core.errors import CallerError, Invalid, TooLarge, UnsupportedMedia

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
# A comment ends at its first `-->`: with a choice, thirty comments take hours.
_MAP = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:urlset|sitemapindex)[\s>]",
    re.DOTALL,
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

_MAX_OWN_RULES = 5_000
"""Rules of `robots.txt`, with each of which an address is compared: 30 ms for the slowest patterns."""

_AGENT = re.compile(r"\s*user[- ]?agent")
_MAX_DELAY = 10.0

_MAX_MAPPED = 50_000
"""Addresses in a sitemap, by its protocol; further ones are not read."""

_PIECE_BYTES = 65_536
_LONG_TAG = re.compile(rb"<[^<]{10000}")
"""A tag, with the text behind it, that takes the parser long: those of a sitemap are short."""


_CLOSED = "User-agent: *\nDisallow: /"
"""Rules for a site whose server fails or whose rules are too many to read."""


class Robots:
    """The rules for us in a site's `robots.txt` (RFC 9309)."""

    def __init__(self, text: str) -> None:
        text = text[:_MAX_ROBOTS_LENGTH]
        # By what is not a comment: Protego takes many a misspelling, such as `disalow`, and blanks for a colon.
        lines = [line for line in text.lower().splitlines() if line.partition("#")[0].strip()]
        agents = sum(bool(_AGENT.match(line)) for line in lines)
        rules = len(lines) - agents
        is_long = rules > _MAX_OWN_RULES or agents * rules > _MAX_RULES
        self._rules = Protego.parse(_CLOSED if is_long else text)
        self.delay = min(self._rules.crawl_delay(AGENT) or 0.0, _MAX_DELAY)
        """Seconds to wait between two pages."""

    def allows(self, url: str) -> bool:
        """Return whether a page may be fetched."""
        return self._rules.can_fetch(url, AGENT)


@dataclass(frozen=True, slots=True)
class Crawl:
    """Pages of one website.

    :param fetcher: how they are fetched; it holds the limits for one page.
    :param pages: the most pages and sitemaps to fetch.
    :param seconds: the most time to spend.
    :param size: the most bytes to fetch.
    :param pause: seconds between two pages, unless the site asks for more.
    """

    fetcher: Fetcher = field(default_factory=Fetcher)
    pages: int = 2_000
    seconds: float = 1_800.0
    size: int = 500_000_000
    pause: float = 0.2

    def articles(self, url: str, stopped: Callable[[], bool] = lambda: False) -> Iterator[RawArticle | Refusal]:
        """Yield the pages that an address leads to: those of a sitemap, or the page itself and what it links to.

        A page that cannot be fetched is refused and the others continue; an error of the first page is raised. When a
        limit ends the crawl, the last item is a refusal: `crawl_cut`.

        :param stopped: whether further pages are no longer needed; asked before each page and each address.
        """
        start = canonical(url)
        robots = self._robots(start)
        first = self._fetched(start, start, robots)
        folder = "" if _is_map(first) else first.url.rpartition("/")[0] + "/"
        deadline = time.monotonic() + self.seconds
        waiting, queued = deque([start]), {start}
        pages = size = 0
        while waiting and not stopped():
            at = waiting.popleft()
            if pages == self.pages or size > self.size or time.monotonic() > deadline:
                yield Refusal(TooLarge("crawl_cut", pages=pages), start)
                return
            pages += 1
            try:
                page = first if at == start else self._next(at, first.url, robots)
                further_urls = _further_urls(page, folder)
            except CallerError as error:
                yield Refusal(error, at)
                continue
            size += len(page.data)
            if page.url != at and page.url in queued:
                continue
            queued.add(page.url)
            if not _is_map(page):
                yield RawArticle(page.data, "html", page.url)
            for found in further_urls:
                if stopped() or time.monotonic() > deadline:
                    break
                fairness.yield_to_questions()
                new = found not in queued and same_site(first.url, found) and robots.allows(found)
                if new and len(queued) < _MAX_QUEUED:
                    queued.add(found)
                    waiting.append(found)

    def _next(self, url: str, site: str, robots: Robots) -> Response:
        time.sleep(max(self.pause, robots.delay))
        return self._fetched(url, site, robots)

    def _fetched(self, url: str, site: str, robots: Robots) -> Response:
        """Return a page or a sitemap that the site allows us to fetch."""
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
    """Return the addresses that a sitemap lists, or those below `folder`, if there is one, that a page links to."""
    urls: dict[str, None] = {}
    for url in sitemap_urls(page.data) if _is_map(page) else page_links(page) if folder else ():
        fairness.yield_to_questions()
        with suppress(CallerError):
            urls[canonical(url)] = None
    if _is_map(page):
        return tuple(urls)
    return tuple(url for url in urls if url.startswith(folder) and not _NO_PAGE.search(urlsplit(url).path))


def page_links(page: Response) -> Iterator[str]:
    """Yield the absolute addresses that a page's links lead to, in order."""
    text = page.data.decode(errors="replace")
    at, base = page.url, _BASE.search(text)
    if base is not None:
        with suppress(CallerError, ValueError):
            at = canonical(urljoin(page.url, unescape(base[1])))
    for match in _LINK.finditer(text):
        with suppress(ValueError):
            yield urljoin(at, unescape(next(filter(None, match.groups()), "")).strip())


def sitemap_urls(data: bytes) -> list[str]:
    """Return the addresses of a sitemap, or of an index of sitemaps. Raises `sitemap_invalid` or `xml_doctype`.

    It is parsed in pieces: the parser lets nothing else run in the process meanwhile.
    """
    if b"<!doctype" in data.lower():
        raise Invalid("xml_doctype")
    if _LONG_TAG.search(data):
        raise Invalid("sitemap_invalid")
    sitemap = _Sitemap()
    with Invalid("sitemap_invalid").instead_of(expat.ExpatError):
        for start in range(0, len(data), _PIECE_BYTES):
            fairness.yield_to_questions()
            sitemap.parser.Parse(data[start : start + _PIECE_BYTES])
            if len(sitemap.urls) >= _MAX_MAPPED:
                return sitemap.urls[:_MAX_MAPPED]
        sitemap.parser.Parse(b"", True)
    return sitemap.urls


class _Sitemap:
    """Collects the text of each `loc` while a sitemap is parsed."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read

    def _begin(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002 - expat's signature
        self._text = [] if name.rpartition(" ")[2] == "loc" else None

    def _read(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:  # noqa: ARG002 - expat's signature
        if self._text is not None:
            self.urls.append("".join(self._text).strip())
        self._text = None
