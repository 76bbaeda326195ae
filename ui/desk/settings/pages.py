"""What all pages of settings share: where they are in the menu, and what they say once something was saved."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Query
from starlette.responses import Response

from pipelines.gate import Route
from ui.desk.view import Desk, back_to

Saved: TypeAlias = Annotated[str, Query(max_length=40)]
"""What the page says was done."""
SCOPE = "admin"
ROOT = "/desk/settings"


@dataclass(frozen=True, slots=True)
class Section:
    """A page of settings in their menu."""

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


def reads(*paths: str) -> tuple[Route, ...]:
    """Routes of pages that are looked at."""
    return tuple(Route("GET", f"{ROOT}{path}", scope=SCOPE, page=True) for path in paths)


def writes(limit: int, *paths: str) -> tuple[Route, ...]:
    """Routes of forms."""
    return tuple(Route("POST", f"{ROOT}{path}", scope=SCOPE, page=True, limit=limit) for path in paths)


def page(desk: Desk, here: str, template: str, status: int = 200, **values: object) -> Response:
    """A page of settings.

    :param here: its section.
    """
    return desk.page(f"settings/{template}", status, section="settings", sections=SECTIONS, here=here, **values)


def saved(path: str, what: str = "form") -> Response:
    """Go back to a page, which says that what was asked for was done, and begins there."""
    joint = "&" if "?" in path else "?"
    return back_to(f"{path}{joint}saved={what}#{what}")
