"""Shared code of the desk's pages: texts, the current operator, navigation."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from hashlib import sha256
from http import HTTPStatus
from inspect import iscoroutinefunction
from threading import Lock
from typing import Any, TypeVar, cast

from cachetools import TTLCache
from fastapi.concurrency import run_in_threadpool
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from components.language.texts import day as written_day
from components.language.texts import number, percent, text, text_or, texts
from pipelines import desk_gate, problems
from settings import Settings
from tenants.accounts import registry
from tenants.chats import fanout
from tenants.core import context
from tenants.core.errors import Conflict, Forbidden, Invalid, OporaError, RateLimited
from tenants.desk import operator_sessions
from tenants.desk.operators import Operator
from ui.desk.assets import Templates

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Part = TypeVar("Part")

SEE_OTHER = 303

_SHARED_SECONDS, _MOST_SHARED = 1.0, 500

_MENU = (
    ("inbox", "/desk", "operate"),
    ("gaps", "/desk/gaps", "operate"),
    ("documents", "/desk/documents", "ingest"),
    ("insight", "/desk/insight", "operate"),
    ("people", "/desk/people", "admin"),
    ("settings", "/desk/settings", "admin"),
    ("tenants", "/desk/tenants", desk_gate.INSTALLATION),
)
_TABS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "gaps": (
        ("gaps", "/desk/gaps", "operate"),
        ("articles", "/desk/articles", "operate"),
        ("stale", "/desk/stale", "ingest"),
        ("contradictions", "/desk/contradictions", "ingest"),
        ("rejected", "/desk/rejected", "ingest"),
    ),
    "insight": (
        ("figures", "/desk/insight", "operate"),
        ("audit", "/desk/audit", "operate"),
        ("reading", "/desk/reading", "ingest"),
        ("evaluation", "/desk/evaluation", "ingest"),
        ("playground", "/desk/playground", "ingest"),
    ),
}
"""Pages of a section."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Page in the menu, or among the tabs of a section."""

    name: str
    path: str
    current: bool


def entries(pages_of: Iterable[tuple[str, str, str]], current: object) -> tuple[Entry, ...]:
    """Return the pages, by name, path and scope, that the operator in this request may see."""
    return tuple(Entry(name, path, name == current) for name, path, scope in pages_of if may(scope))


def may(scope: str) -> bool:
    return desk_gate.may(operator_sessions.current().operator, scope)


def or_again(show: Callable[..., Response], *refusals: type[OporaError]) -> Callable[[Endpoint], Endpoint]:
    """Show a form again if its endpoint raises, in a thread if it is a coroutine.

    :param show: gets the error and the endpoint's arguments, by name.
    :param refusals: what may be raised: `Invalid` and `Conflict` if not given.
    """

    kinds = refusals or (Invalid, Conflict)

    def decorate(endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        def run(**given: object) -> Response:
            try:
                return endpoint(**given)  # type: ignore[no-any-return]
            except kinds as refused:
                return show(refused, **given)

        @wraps(endpoint)
        async def run_async(**given: object) -> Response:
            try:
                return await endpoint(**given)  # type: ignore[no-any-return]
            except kinds as refused:
                return await run_in_threadpool(show, refused, **given)

        return cast("Endpoint", run_async if iscoroutinefunction(endpoint) else run)

    return decorate


class Shared:
    """Parts of pages that tabs of a tenant share, for a second or until one of its chats changes.

    At each change, every tab of every operator loads its page.
    """

    def __init__(self) -> None:
        self._parts: TTLCache[Hashable, Any] = TTLCache(_MOST_SHARED, _SHARED_SECONDS)
        self._lock = Lock()

    def get(self, make: Callable[[], Part], *name: str) -> Part:
        # The version is read first: a change while the part is made has another one.
        key = (context.current().tenant_id, fanout.version(), *name)
        with self._lock:
            part: Part | None = self._parts.get(key)
        if part is None:
            part = make()
            with self._lock:
                self._parts[key] = part
        return part


class Desk:
    def __init__(self, templates: Templates, settings: Settings) -> None:
        self._templates = templates
        self.settings = settings
        self.shared = Shared()

    def public(self, template: str, refused: OporaError | None = None, **values: object) -> Response:
        """Render a page for a visitor who is not signed in.

        :param refused: why a form is shown again; the page gets its status and, as `fault`, its words.
        """
        fault = problems.detail(refused) if refused else ""
        response = HTMLResponse(self._html(template, {"fault": fault, **values}), refused.status if refused else 200)
        if isinstance(refused, RateLimited):
            response.headers["Retry-After"] = str(refused.retry_after)
        return response

    def page(
        self, template: str, refused: OporaError | None = None, *, section: str = "", **values: object
    ) -> Response:
        """Render a page for the operator in this request.

        :param section: which entry of the menu it belongs to; a value `tab` says which page of it.
        """
        signed_in = operator_sessions.current()
        operator = signed_in.operator
        place = registry.current().name if operator.tenant_id is not None else ""
        about = {"me": operator, "csrf": signed_in.csrf, "place": place, "section": section}
        about |= {"menu": entries(_MENU, section), "tabs": entries(_TABS.get(section, ()), values.get("tab", ""))}
        return self.public(template, refused, **{**about, **values})

    def error(self, error: OporaError) -> Response:
        title, detail = problems.explained(error)
        if error.code == Forbidden.code:
            # The usual words are about tokens and scopes.
            detail = text("desk.error.forbidden", reader_locale())
        return self.public("error.html", error, title=title, detail=detail)

    def part(self, template: str, **values: object) -> Markup:
        return Markup(self._html(template, values).strip())  # noqa: S704 - templates escape every value

    def _html(self, template: str, values: Mapping[str, object]) -> str:
        locale = reader_locale()
        standing: dict[str, object] = {"me": None, "menu": (), "place": "", "csrf": "", "locale": locale}
        standing |= {"t": texts("desk", locale), "named": names(locale)}
        standing["because"] = partial(_reason, named=names(locale))
        standing |= {"number": partial(number, locale=locale), "percent": partial(percent, locale=locale)}
        standing |= {"clock": partial(clock, locale=locale), "day": partial(day, locale=locale)}
        return self._templates.render(template, locale, {**standing, **values})


def unless_known(response: Response, known: str) -> Response:
    """Return the page, or an empty response with the status 304 if the browser has this version of it.

    :param known: the header `If-None-Match` of the request.
    """
    version = f'"{sha256(response.body).hexdigest()[:32]}"'
    changed = response if version != known.removeprefix("W/") else Response(status_code=HTTPStatus.NOT_MODIFIED)
    changed.headers["ETag"] = version
    return changed


def reader_locale() -> str:
    return problems.caller.get().locale


def names(locale: str) -> Callable[[str, str], str]:
    """Return labels for codes such as outcomes, reasons and steps. Codes without a label are shown unchanged."""

    def name(kind: str, code: str) -> str:
        return text_or(code, f"desk.{kind}.{code}", locale)

    return name


def home(operator: Operator) -> str:
    return "/desk/tenants" if operator.tenant_id is None else "/desk"


def back_to(path: str) -> Response:
    return RedirectResponse(path, SEE_OTHER)


def clock(moment: datetime, *, locale: str) -> str:
    """Render a moment; browsers with JavaScript show it in the reader's time zone and format."""
    return f"{day(moment, locale=locale)} {moment:%H:%M} UTC"


def day(moment: datetime | str, *, locale: str) -> str:
    return written_day(moment if isinstance(moment, str) else f"{moment:%Y-%m-%d}", locale)


def _reason(answered: object, *, named: Callable[[str, str], str]) -> str:
    """Return in words why an answer had its outcome; empty if the words of the outcome say so already."""
    reason = getattr(answered, "refusal_reason", None) or getattr(answered, "reason", None)
    words = named("reason", reason) if reason else ""
    return "" if words in named("outcome", getattr(answered, "outcome", "")) else words
