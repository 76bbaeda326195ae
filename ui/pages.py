"""Public pages: the widget's two scripts, the chat as a full page, the demo shop, and the start page at `/`.

These pages need no token and contain no tenant data: the public key of a site is not a secret.
"""

import gzip
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Self

from fastapi import Form, Header
from fastapi import Path as PathParameter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from components.language.texts import LOCALES, texts
from pipelines import problems
from pipelines.routes import OpenRouter, opens
from settings import get_settings
from tenants.chats import sites
from tenants.chats.visitors import MAX_IDENTITY_BYTES
from tenants.core.errors import Forbidden

ASSETS = {"loader.js": "public, max-age=300", "chat.js": "public, max-age=31536000, immutable"}
"""The widget's scripts, and how long browsers cache them. The loader refers to the chat by digest."""
_CUSTOMER_PATH = "/chat/{site}/customer"
"""The chat of an identified customer. `POST /chat/{site}` would also match an address of Hayhooks."""
_FORM_BYTES = MAX_IDENTITY_BYTES + 1_000

DEMO_SITES = {locale: f"demo-{locale}" for locale in LOCALES}
"""Keys of the sites that `opora demo` adds for the shop's page, by locale."""

_HERE = Path(__file__).parent
_SITE_KEY = r"^[A-Za-z0-9_-]{4,64}$"
_TEXTS = {
    "ru": ("Чат с поддержкой", "Чату нужен JavaScript."),
    "en": ("Support chat", "The chat needs JavaScript."),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src {style}; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file for browsers: compressed, and cached by digest."""

    body: bytes
    compressed: bytes
    digest: str

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.from_body(path.read_bytes())

    @classmethod
    def from_body(cls, body: bytes) -> Self:
        return cls(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:24])


def sent(asset: Asset, media_type: str, cache: str, accept_encoding: str, if_none_match: str) -> Response:
    """Respond with the file, or with 304 if the browser has it already."""
    tag = f'"{asset.digest}"'
    headers = {"Cache-Control": cache, "ETag": tag, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    if "gzip" in accept_encoding:
        return Response(asset.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type)
    return Response(asset.body, headers=headers, media_type=media_type)


def strict_templates(folder: Path) -> Environment:
    """Return the templates of a folder, in which an undefined name is an error."""
    loader = FileSystemLoader(folder)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def router(locale_of_site: Callable[[str], Awaitable[str]]) -> OpenRouter:
    """Return the endpoints.

    :param locale_of_site: returns an empty text for a key without a site.
    """
    endpoints = OpenRouter(None, tags=["widget"])
    templates = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True)

    def add_script(name: str) -> None:
        asset = Asset.read(_HERE / "static" / name)

        @endpoints.get(f"/widget/{name}", name=name.removesuffix(".js"))
        async def send(
            accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
        ) -> Response:
            """Serve a script of the widget."""
            response = sent(asset, "text/javascript", ASSETS[name], accept_encoding, if_none_match)
            # Browsers fetch cross-origin modules with CORS; the file contains only public code.
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            return response

    for script in ASSETS:
        add_script(script)

    @endpoints.get("/chat/{site}")
    @endpoints.get(_CUSTOMER_PATH)
    @opens(takes_turns=True)
    async def chat(
        site: Annotated[str, PathParameter(pattern=_SITE_KEY)], accept_language: Annotated[str, Header()] = ""
    ) -> Response:
        """Render a site's chat as a page, for places that allow no third-party scripts."""
        return await chat_page(site, accept_language)

    @endpoints.post(_CUSTOMER_PATH)
    @opens(body=None, limit=_FORM_BYTES)
    async def identified_chat(
        site: Annotated[str, PathParameter(pattern=_SITE_KEY)],
        identity: Annotated[str, Form(max_length=MAX_IDENTITY_BYTES)],
        origin: Annotated[str, Header()] = "",
        accept_language: Annotated[str, Header()] = "",
    ) -> Response:
        """Render the chat for a customer identified by a form of your page.

        The site must list the page's origin, even if it allows any: otherwise another page could make customers write
        in its own person's chat.
        """
        if origin not in (await sites.load(site)).origins:
            raise Forbidden("origin_forbidden", origin=origin[:200] or "-")
        response = await chat_page(site, accept_language, identity)
        response.headers["Cache-Control"] = "no-store"
        return response

    @endpoints.get("/demo")
    @opens(takes_turns=True)
    async def demo() -> Response:
        """Render the demo shop with the widget, in the browser's language if `opora demo` has set that shop up."""
        shops = await demo_shops()
        if not shops:
            return Response(status_code=404)
        preferred = problems.caller.get().locale
        locale = preferred if preferred in shops else shops[0]
        return styled("demo", "demo_shop", locale, site=DEMO_SITES[locale])

    @endpoints.get("/")
    @opens(takes_turns=True)
    async def home() -> Response:
        """Render a page with links to the desk, the API documentation and the demo shop."""
        places = ["desk"]
        if await demo_shops():
            places.append("demo")
        if get_settings().api_docs:
            places.append("docs")
        return styled("home", "home", problems.caller.get().locale, places=places)

    async def chat_page(site: str, accept_language: str, identity: str = "") -> Response:
        locale = problems.locale_of(accept_language) or await locale_of_site(site) or problems.caller.get().locale
        title, noscript = _TEXTS[locale]
        values = {"site": site, "locale": locale, "title": title, "noscript": noscript, "identity": identity}
        return _page(templates.get_template("chat.html").render(values), "'none'")

    async def demo_shops() -> list[str]:
        return [locale for locale, site in DEMO_SITES.items() if await locale_of_site(site)]

    def styled(name: str, area: str, locale: str, **values: object) -> Response:
        values |= {"locale": locale, "t": texts(area, locale)}
        style = (_HERE / "templates" / f"{name}.css").read_text(encoding="utf-8")
        digest = b64encode(sha256(style.encode()).digest()).decode()
        page = templates.get_template(f"{name}.html").render(style=Markup(style), **values)  # noqa: S704
        return _page(page, f"'sha256-{digest}'")

    return endpoints


def _page(text: str, style: str) -> Response:
    headers = {
        "Content-Security-Policy": _POLICY.format(style=style),
        "Referrer-Policy": "strict-origin",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }
    return Response(text, headers=headers, media_type="text/html; charset=utf-8")
