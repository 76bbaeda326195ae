"""Cases for every page of the desk: a module for each section of the menu."""

from tests.service.desk_cases import (
    account,
    documents,
    gaps,
    help_centre,
    inbox,
    insight,
    settings,
    tenants,
)
from tests.service.desk_cases.account import PASSWORD
from tests.service.desk_cases.case import PageCase

__all__ = ["ASSETS", "ENDLESS", "PAGES", "PASSWORD", "PageCase"]

ASSETS = {("GET", "/desk/assets/desk.js"), ("GET", "/desk/assets/desk.css")}
PAGES = account.PAGES | documents.PAGES | gaps.PAGES | inbox.PAGES | insight.PAGES | settings.PAGES | tenants.PAGES
PAGES |= help_centre.PAGES
ENDLESS = {("GET", "/desk/live")}
"""Streams that go on until their reader leaves."""
