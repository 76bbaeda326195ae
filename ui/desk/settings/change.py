"""History of changes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from components.language.texts import number, text, text_or
from pipelines.routes import OpenRouter
from tenants.accounts import settings_history
from tenants.accounts.settings_history import AREAS, SettingChange
from tenants.chats import sites, webhooks
from ui.desk.rendering import Desk, clock, reader_locale
from ui.desk.settings import pages

_LABELS = (
    "settings.{area}.{name}.label",
    "settings.{name}.label",
    "settings.field.{name}",
    "settings.{area}.{name}",
)
_OF_OTHER_PAGES = {"approved_offers": "settings.section.offers", "synonyms": "settings.section.synonyms"}
_NAMED_BY: Mapping[str, str] = {"webhook": "url", "token": "subject", "tool": "title"}
"""The field that people know an object by."""
_WORDS: Mapping[str, str] = {
    "role": "role.{value}",
    "default_role": "role.{value}",
    "locale": "insight.language.{value}",
    "scopes": "tokens.scope.{value}",
    "events": "settings.webhook.event.{value}",
}
"""Words for the values of a field; those of a choice are below its label."""
_CHOICE = "settings.{area}.{name}.{value}"
_KEYS = (
    "settings.{name}.{key}.label",
    "settings.{name}.{within}_{key}.label",
    "settings.{name}.{key}",
    "settings.offer.{key}.label",
)
_MOMENTS = {"expires_at", "until"}


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(f"{pages.ROOT}/changes")
    def show_changes(area: Annotated[str, Query(max_length=20)] = "") -> Response:
        chosen = next((one for one in AREAS if one == area), None)
        return pages.page(
            desk,
            "changes",
            "changes.html",
            changes=tuple((one, _differences(one)) for one in settings_history.latest(chosen)),
            areas=AREAS,
            about=_about(),
            area=area,
        )

    return endpoints


def _about() -> Callable[[SettingChange], str]:
    """Return what a change is about, by the name that people know."""
    known = {("site", one.key): one.name for one in sites.own()}
    known |= {("webhook", one.webhook_id): one.url for one in webhooks.own()}

    def name(change: SettingChange) -> str:
        values = {**change.before, **change.after}
        recorded = values.get(_NAMED_BY.get(change.area, ""))
        return known.get((change.area, change.about)) or str(recorded or change.about.replace("*", ""))

    return name


def _differences(change: SettingChange) -> dict[str, tuple[str, str]]:
    area = change.area
    return {
        _named(area, name): (
            _written(area, name, change.before.get(name)),
            _written(area, name, change.after.get(name)),
        )
        for name in (*change.before, *change.after)
    }


def _named(area: str, name: str) -> str:
    return _found(_OF_OTHER_PAGES.get(name, ""), *_LABELS, area=area, name=name) or name


def _written(area: str, name: str, value: object, within: str = "") -> str:
    """Return a value in words, where it has any.

    :param within: the key of the dictionary that the value is from.
    """
    if value is None or value in ("", [], {}):
        return _text("nothing")
    if isinstance(value, bool):
        return _text("yes" if value else "no")
    if isinstance(value, float):
        return number(value, None, locale=reader_locale())
    if isinstance(value, list):
        written = (", ".join(map(str, one)) if isinstance(one, list) else _written(area, name, one) for one in value)
        return "\n".join(written)
    if isinstance(value, dict):
        return "\n".join(f"{_key(name, key, within)}: {_written(area, name, one, key)}" for key, one in value.items())
    if name in _MOMENTS:
        return clock(datetime.fromisoformat(str(value)), locale=reader_locale())
    return _found(_WORDS.get(name, ""), _CHOICE, area=area, name=name, value=str(value)) or str(value)


def _key(name: str, key: str, within: str) -> str:
    # An offer for certain words has the key `cancellation/order refund`.
    kind, bound, words = key.partition("/")
    label = _found(*_KEYS, name=name, key=kind, within=within)
    return f"{label} ({words})" if label and bound else label or key


def _found(*keys: str, **parts: str) -> str:
    """Return the first text of the desk that exists; empty if none does."""
    found = (text_or("", f"desk.{key.format(**parts)}", reader_locale()) for key in keys)
    return next(filter(None, found), "")


def _text(key: str) -> str:
    return text(f"desk.settings.form.{key}", reader_locale())
