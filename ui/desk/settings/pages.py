"""Shared code of the settings pages: their place in the menu, and the confirmation after saving."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from fastapi import Query
from starlette.responses import Response

from pipelines.routes import OpenRouter
from tenants.core.errors import OporaError
from ui.desk.rendering import Desk, back_to

Saved: TypeAlias = Annotated[str, Query(max_length=40)]
"""Name of the saved section, for the confirmation on the page."""
ROOT = "/desk/settings"


SECTIONS: Mapping[str, str] = {
    name: f"{ROOT}/{name}" if name != "policy" else ROOT
    for name in (
        "policy",
        "hours",
        "offers",
        "synonyms",
        "sites",
        "tools",
        "webhooks",
        "tokens",
        "models",
        "sign-in",
        "changes",
    )
}
"""Path of each settings page in the menu."""


def router() -> OpenRouter:
    return OpenRouter("admin", limit=200_000, page=True, include_in_schema=False)


def page(desk: Desk, here: str, template: str, refused: OporaError | None = None, **values: object) -> Response:
    return desk.page(f"settings/{template}", refused, section="settings", sections=SECTIONS, here=here, **values)


def saved(path: str, what: str = "form") -> Response:
    """Redirect to a page that confirms the action and opens at its section."""
    joint = "&" if "?" in path else "?"
    return back_to(f"{path}{joint}saved={what}#{what}")
