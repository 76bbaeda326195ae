"""Audit pages: recorded turns by words, outcome, time and person, and the verification of the chain."""

from asyncio import to_thread
from datetime import date, datetime
from typing import Annotated, TypeAlias, get_args
from urllib.parse import urlencode

from fastapi import Query
from starlette.responses import Response

from components.turn import Outcome
from pipelines import pages, problems
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.audit.chain import Verification
from tenants.audit.search import TurnQuery
from tenants.core import context
from tenants.core.errors import Invalid
from tenants.desk import sessions
from tenants.insight import period
from tenants.privacy import persons
from ui.api.records import verified
from ui.desk.insights.tabs import tabs
from ui.desk.view import Desk

PAGE = 50
_PATH = "/desk/audit"
_SHOWN_FAULTS = 50


_Words: TypeAlias = Annotated[str, Query(max_length=200)]
_Day: TypeAlias = Annotated[str, Query(max_length=10)]


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter("operate", limit=1000, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_audit(
        q: _Words = "",
        outcome: _Words = "",
        person: _Words = "",
        since: _Day = "",
        until: _Day = "",
        before: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    ) -> Response:
        wanted = {"q": q, "outcome": outcome, "person": person, "since": since, "until": until}
        try:
            query = _query(wanted, before)
        except Invalid as refused:
            return _page(desk, wanted, None, status=refused.status, fault=problems.detail(refused))
        return _page(desk, wanted, query, first=before is None)

    @endpoints.post(f"{_PATH}/verify")
    @opens(scope="admin")
    async def verify() -> Response:
        found = await verified()
        return await to_thread(_page, desk, {}, TurnQuery(), verified=found)

    return endpoints


def _page(
    desk: Desk,
    wanted: dict[str, str],
    query: TurnQuery | None,
    *,
    status: int = 200,
    fault: str = "",
    first: bool = True,
    verified: Verification | None = None,
) -> Response:
    chosen = {name: value for name, value in wanted.items() if value}
    records = search.find(query, limit=PAGE + 1) if query is not None else ()
    return desk.page(
        "insight/audit.html",
        status,
        section="insight",
        tabs=tabs("audit"),
        wanted={"q": "", "outcome": "", "person": "", "since": "", "until": "", **wanted},
        chosen=chosen,
        outcomes=get_args(Outcome),
        records=records[:PAGE],
        following=urlencode({**chosen, "before": records[PAGE - 1].sequence}) if len(records) > PAGE else "",
        first=first,
        fault=fault,
        verified=verified,
        shown_faults=_SHOWN_FAULTS,
        is_admin=pages.may(sessions.current().operator, "admin"),
    )


def _query(wanted: dict[str, str], before: int | None) -> TurnQuery:
    """Parse the search form. Raises `Invalid`, `period_invalid`, for an invalid day."""
    words = wanted["q"].replace("\0", " ").strip()
    return TurnQuery(
        since=_begins(wanted["since"]),
        until=_begins(wanted["until"], after=1),
        outcome=wanted["outcome"] or None,
        text=words or None,
        person=persons.digest(context.current().tenant_id, wanted["person"]) if wanted["person"] else None,
        before=before,
    )


def _begins(written: str, *, after: int = 0) -> datetime | None:
    """Return the start of a day, or of the next one, in the tenant's time zone."""
    if not written:
        return None
    try:
        day = date.fromisoformat(written)
    except ValueError as broken:
        raise Invalid("period_invalid", most=period.MOST_DAYS) from broken
    return period.of_day(day).bounds[after]
