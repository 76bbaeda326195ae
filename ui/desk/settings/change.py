"""History of changes, with undo."""

from typing import Annotated

from fastapi import Form, Query
from starlette.responses import Response

from components.language.texts import text, text_or
from pipelines.ask.settings_changes import undo
from pipelines.routes import OpenRouter
from tenants.accounts import changes
from tenants.accounts.changes import AREAS, SettingChange
from tenants.chats import sites
from tenants.core.errors import CallerError, NotFound, OporaError
from ui.desk.settings import pages
from ui.desk.view import Desk, reader_locale

_PATH = f"{pages.ROOT}/changes"
_NAMES = ("{area}.{name}.label", "{name}.label", "field.{name}", "{area}.{name}")
_OF_OTHER_PAGES = {"approved_offers": "section.offers", "synonyms": "section.synonyms"}


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_PATH)
    def show_changes(area: Annotated[str, Query(max_length=20)] = "", saved: pages.Saved = "") -> Response:
        return listed(area, saved=saved)

    @endpoints.post(f"{_PATH}/undo")
    def undo_change(change_id: Annotated[str, Form(max_length=40)] = "") -> Response:
        try:
            undo(change_id)
        except NotFound:
            raise
        except CallerError as refused:
            return listed("", refused)
        return pages.saved(_PATH, "undone")

    def listed(area: str, refused: OporaError | None = None, *, saved: str = "") -> Response:
        chosen = next((one for one in AREAS if one == area), None)
        return pages.page(
            desk,
            "changes",
            "changes.html",
            refused,
            changes=tuple((one, _differences(one)) for one in changes.latest(chosen)),
            areas=AREAS,
            sites={one.key: one.name for one in sites.own()},
            area=area,
            saved=saved,
        )

    return endpoints


def _differences(change: SettingChange) -> dict[str, tuple[str, str]]:
    return {
        _named(change.area, name): (_written(change.before.get(name)), _written(change.after.get(name)))
        for name in (*change.before, *change.after)
    }


def _named(area: str, name: str) -> str:
    tried = (_OF_OTHER_PAGES.get(name, ""), *(one.format(area=area, name=name) for one in _NAMES))
    found = (text_or("", f"desk.settings.{key}", reader_locale()) for key in tried)
    return next(filter(None, found), name)


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
    return text(f"desk.settings.form.{key}", reader_locale())
