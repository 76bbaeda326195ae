"""`/help/{site}`: the help centre of a site.

Threats and defences:

- a page that shows more than a chat of the site: only published documents appear, and none if visitors must sign in;
- markup in an article: the rendered Markdown has no HTML and no links;
- a script that copies pages or votes: both are rate-limited by address;
- pages that take seconds to render, such as tables of thousands of rows or lists of thousands of groups: a tenant has
  few threads for its pages, questions go first, and lists and rendered articles are cached;
- searches, which cost as much as questions: they have the same seats, one at a time for a tenant, with pauses beside
  other tenants, and few may wait.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from fastapi import Form, Header, Query, Request
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from components.language.texts import day, texts
from components.retrieve.cache import TenantLruCache
from pipelines import problems
from pipelines.ask.help_centre import Found, Group, HelpArticle, HelpCentre
from pipelines.ask.help_links import article_key, path_of
from pipelines.ask.runner import Runner
from pipelines.connections import limited_as
from pipelines.fair_requests import Reads
from pipelines.in_progress import counted
from pipelines.pools import Pool
from pipelines.routes import OpenRouter, opens
from settings import get_settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import registry
from tenants.chats import sites
from tenants.chats.sites import Site
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, NotFound, OporaError, RateLimited
from ui.pages import Asset, sent, strict_templates

T = TypeVar("T")

_STYLE = "/widget/help.css"
_ARTICLE = "/help/{site}/{article}"
_FOR_GOOD = "public, max-age=31536000, immutable"

VOTES_PER_MINUTE = 10
"""Votes per address, with a separate limit of one per article."""

_GROUPS = 50
"""Groups on the first page, and on each that follows it."""

_PREVIEW = 6
"""Articles per group on the first page."""

_PAGE = 100


_RENDERING, _OF_TENANT, _WAITING = 4, 2, 50
"""Pages that are rendered at once, those of one tenant, and those of one tenant with the waiting ones."""
_SEARCHES, _SEARCHES_OF_ADDRESS = 20, 5
"""Searches in progress or waiting, of one tenant and from one address. With its pause, one takes about 0.2 s."""
_RENDERED = 200
"""Rendered articles in memory, of all tenants together."""
_LARGEST_RENDERED = 1_000_000
"""Characters of HTML of an article that is cached."""


def _read_inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            fairness.yield_to_questions()
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


_HERE = Path(__file__).parent
# Articles' Markdown has no emphasis, links or HTML at this point: anything that looks like it is text.
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable("table")
    .disable(["code", "blockquote", "hr", "reference", "heading", "lheading", "html_block"])
    .disable(["emphasis", "link", "image", "autolink", "html_inline", "entity", "escape"])
)
_MARKDOWN.core.ruler.at("inline", _read_inline)


def router(limiter: RateLimiter, runner: Runner, reads: Reads) -> OpenRouter:
    """Return the endpoints."""
    pages = _Pages(limiter, runner, reads)
    endpoints = OpenRouter(None, limit=1_000, page=True, tags=["widget"])
    style = Asset.read(_HERE / "help.css")

    @endpoints.get(_STYLE)
    @opens(page=False)
    async def send_style(
        accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
    ) -> Response:
        """Serve the style sheet of the help centre."""
        return sent(style, "text/css", _FOR_GOOD, accept_encoding, if_none_match)

    @endpoints.get("/help/{site}", include_in_schema=False)
    async def index(
        request: Request,
        site: str,
        q: Annotated[str, Query(max_length=200)] = "",
        group: Annotated[str | None, Query(max_length=200)] = None,
        page: Annotated[int, Query(ge=1, le=1_000)] = 1,
    ) -> Response:
        words = " ".join(q.split())
        address = limited_as(request)
        view = partial(pages.search, words, address) if words else pages.rendered(partial(pages.listed, group, page))
        return await pages.shown(request, site, view)

    @endpoints.get(_ARTICLE, include_in_schema=False)
    async def read(request: Request, site: str, article: str, thanks: Annotated[bool, Query()] = False) -> Response:
        return await pages.shown(request, site, pages.rendered(partial(pages.read, article, thanks=thanks)))

    @endpoints.post(_ARTICLE, include_in_schema=False)
    async def vote(
        request: Request, site: str, article: str, helpful: Annotated[Literal["yes", "no"], Form()]
    ) -> Response:
        address = limited_as(request)
        limit = min(VOTES_PER_MINUTE, get_settings().visitor_sessions_per_minute)
        limits = {f"help votes of {address}": limit, f"help votes of {address} on {article}": min(1, limit)}
        view = pages.rendered(partial(pages.vote, article, helpful=helpful == "yes"))
        return await pages.shown(request, site, view, limits)

    return endpoints


class _Pages:
    def __init__(self, limiter: RateLimiter, runner: Runner, reads: Reads) -> None:
        self._limiter = limiter
        self._runner = runner
        self._reads = reads
        self._searches: Counter[tuple[str, str]] = Counter()
        self._centre = HelpCentre()
        self._rendering = Pool("help-pages", _RENDERING, turns=_OF_TENANT)
        self._rendered: TenantLruCache[tuple[Markup, ...]] = TenantLruCache(_RENDERED)
        self._templates = strict_templates(_HERE / "templates")
        self._templates.globals["style"] = f"{_STYLE}?{Asset.read(_HERE / 'help.css').digest[:12]}"

    async def shown(
        self,
        request: Request,
        key: str,
        view: Callable[[Site], Awaitable[Response]],
        limits: Mapping[str, int] | None = None,
    ) -> Response:
        """Return the view of a site, or an error page.

        :param limits: uses per minute, in addition to the limit on reading.
        """
        site = None
        try:
            site = await sites.load(key)
            if not site.has_help_centre:
                raise NotFound("site_unknown")
            with acting_as(Tenant(site.tenant_id, "")):
                await self._limiter.admit_each(_reading_limits(site, limited_as(request)) | dict(limits or {}))
                await registry.admitted()
                self._reads.note_request(site.tenant_id)
                return await view(site)
        except OporaError as error:
            return self._refused(error, site)

    def rendered(self, view: Callable[[Site], Response]) -> Callable[[Site], Awaitable[Response]]:
        """Run the view in a thread of its tenant's."""
        return lambda site: self._rendering.run({site.tenant_id: _WAITING}, partial(view, site))

    def listed(self, chosen: str | None, page: int, site: Site) -> Response:
        groups = self._centre.groups()
        if chosen is None and len(groups) == 1:
            chosen = groups[0].name
        if chosen is None:
            shown, following = _page_of(groups, page, _GROUPS)
            return self._page(site, "index.html", groups=shown, preview=_PREVIEW, page=page, following=following)
        group = next((one for one in groups if one.name == chosen), None)
        if group is None:
            raise NotFound("document_unknown")
        articles, following = _page_of(group.articles, page, _PAGE)
        return self._page(
            site,
            "group.html",
            group=Group(group.name, articles),
            only=len(groups) == 1,
            page=page,
            following=following,
        )

    async def search(self, words: str, address: str, site: Site) -> Response:
        results = await self._found(words, site.tenant_id, address)
        return await self.rendered(partial(self._page, template="search.html", words=words, results=results))(site)

    async def _found(self, words: str, tenant_id: str, address: str) -> tuple[Found, ...]:
        bounds = {(tenant_id, ""): _SEARCHES, (tenant_id, address): _SEARCHES_OF_ADDRESS}
        if any(self._searches[key] >= most for key, most in bounds.items()):
            raise Busy
        with ExitStack() as stack:
            for key in bounds:
                stack.enter_context(counted(self._searches, key))
            turn = self._reads.turn_of(tenant_id, is_search=True)
            stack.callback(turn.end)
            await turn.begin()
            return await self._runner.in_seat(partial(self._centre.search, words))

    def read(self, key: str, site: Site, *, thanks: bool) -> Response:
        article = self._centre.article(key)
        titled = [one for one in article.sections if one.section.title]
        sections = list(zip(article.sections, self._texts(article), strict=True))
        return self._page(site, "article.html", article=article, sections=sections, contents=titled, thanks=thanks)

    def _texts(self, article: HelpArticle) -> tuple[Markup, ...]:
        record = article.record
        key = self._rendered.key(record.doc_id, record.version, record.content_hash)
        texts = self._rendered.get(key)
        if texts is None:
            rendered = (_MARKDOWN.render(one.section.markdown) for one in article.sections)
            texts = tuple(map(Markup, rendered))  # the renderer escapes what it does not know
            if sum(map(len, texts)) <= _LARGEST_RENDERED:
                self._rendered.put(key, texts)
        return texts

    def vote(self, key: str, site: Site, *, helpful: bool) -> Response:
        self._centre.vote(key, helpful=helpful)
        return RedirectResponse(f"{path_of(site.key)}/{key}?thanks=true#helpful", HTTPStatus.SEE_OTHER)

    def _page(self, site: Site | None, template: str, status: int = 200, **values: object) -> Response:
        locale = site.config.locale if site else problems.caller.get().locale
        listed = status == HTTPStatus.OK and site is not None and site.config.help_centre == "listed"
        standing: dict[str, object] = {
            "site": site if site is not None and site.has_help_centre else None,
            "home": path_of(site.key) if site else "",
            "hidden": not listed,
            "locale": locale,
            "t": texts("help_centre", locale),
            "day": partial(day, locale=locale),
            "key": article_key,
            "words": "",
        }
        html = self._templates.get_template(template).render({**standing, **values})
        return HTMLResponse(html, status, {} if listed else {"X-Robots-Tag": "noindex"})

    def _refused(self, error: OporaError, site: Site | None) -> Response:
        kind = {404: "missing", 429: "busy"}.get(error.status, "failed")
        response = self._page(site, "error.html", error.status, kind=kind)
        if isinstance(error, RateLimited):
            response.headers["Retry-After"] = str(error.retry_after)
        return response


def _page_of(listed: tuple[T, ...], page: int, size: int) -> tuple[tuple[T, ...], int | None]:
    """Return a page of a list, and the number of the following page, if there is one."""
    end = page * size
    return listed[end - size : end], page + 1 if len(listed) > end else None


def _reading_limits(site: Site, address: str) -> dict[str, int]:
    settings = get_settings()
    return {
        f"help pages of {address}": settings.visitor_sessions_per_minute,
        f"help pages of site {site.key}": settings.site_sessions_per_minute,
    }
