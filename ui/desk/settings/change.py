"""History of changes, with undo."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Form, Query
from starlette.responses import Response

from components.language.texts import text
from pipelines import problems
from pipelines.ask.settings_changes import undo
from pipelines.routes import OpenRouter
from tenants.accounts import changes
from tenants.accounts.changes import AREAS, Change
from tenants.chats import sites
from tenants.core.errors import CallerError, NotFound
from ui.desk.settings import pages
from ui.desk.settings.forms import FORM_BYTES
from ui.desk.view import Desk

_PATH = "/changes"
_NAMES = ("{area}.{name}.label", "{name}.label", "field.{name}", "{area}.{name}")
_OF_OTHER_PAGES = {"approved_offers": "section.offers", "synonyms": "section.synonyms"}


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(pages.ROOT + _PATH)
    def show_changes(
        area: Annotated[str, Query(max_length=20)] = "", saved: Annotated[str, Query(max_length=40)] = ""
    ) -> Response:
        return listed(area, saved=saved)

    @endpoints.post(f"{pages.ROOT}{_PATH}/undo")
    def undo_change(change_id: Annotated[str, Form(max_length=40)] = "") -> Response:
        try:
            undo(change_id)
        except NotFound:
            raise
        except CallerError as refused:
            return listed("", fault=problems.detail(refused), status=refused.status)
        return pages.saved(pages.ROOT + _PATH, "undone")

    def listed(area: str, *, fault: str = "", saved: str = "", status: int = 200) -> Response:
        chosen = next((one for one in AREAS if one == area), None)
        return pages.page(
            desk,
            "changes",
            "changes.html",
            status,
            changes=tuple((one, _differences(one)) for one in changes.latest(chosen)),
            areas=AREAS,
            sites={one.key: one.name for one in sites.own()},
            area=area,
            fault=fault,
            saved=saved,
        )

    return endpoints


@dataclass(frozen=True, slots=True)
class Difference:
    """Return a changed field with its label and readable values."""

    name: str
    before: str
    after: str


def _differences(change: Change) -> tuple[Difference, ...]:
    names = dict.fromkeys((*change.before, *change.after))
    return tuple(
        Difference(_named(change.area, name), _written(change.before.get(name)), _written(change.after.get(name)))
        for name in names
    )


def _named(area: str, name: str) -> str:
    locale = problems.caller.get().locale
    for key in (_OF_OTHER_PAGES.get(name, ""), *(one.format(area=area, name=name) for one in _NAMES)):
        try:
            return text(f"desk.settings.{key}", locale)
        except KeyError:
            continue
    return name


def _written(value: object) -> str:
    if value is None or value in ("", [], {}):
        return _text("nothing")
    if isinstance(value, bool):
        return _text("yes" if value else "no")
    if isinstance(value, list):
        return "\n".join(", ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_written(one)}" for name, one in value.items())
    return str(value)


def _text(key: str) -> str:
    return text(f"desk.settings.form.{key}", problems.caller.get().locale)
