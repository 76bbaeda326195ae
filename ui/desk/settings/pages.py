"""Shared code of the settings pages: their place in the menu, and the confirmation after saving."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Query
from starlette.responses import Response

from ui.desk.view import Desk, back_to

Saved: TypeAlias = Annotated[str, Query(max_length=40)]
"""Name of the saved section, for the confirmation on the page."""
SCOPE = "admin"
ROOT = "/desk/settings"


@dataclass(frozen=True, slots=True)
class Section:
    """Settings page in the menu."""

    name: str
    path: str


SECTIONS = tuple(
    Section(name, f"{ROOT}/{name}" if name != "policy" else ROOT)
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
)


def page(desk: Desk, here: str, template: str, status: int = 200, **values: object) -> Response:
    """Render a settings page.

    :param here: its section.
    """
    return desk.page(f"settings/{template}", status, section="settings", sections=SECTIONS, here=here, **values)


def saved(path: str, what: str = "form") -> Response:
    """Redirect to a page that confirms the action and opens at its section."""
    joint = "&" if "?" in path else "?"
    return back_to(f"{path}{joint}saved={what}#{what}")
