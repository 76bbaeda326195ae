"""Audit pages: recorded turns by words, outcome, time and person, and the verification of the chain."""

from asyncio import to_thread
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeAlias, get_args
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from components.turn import Outcome
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.audit.chain import Verification
from tenants.audit.search import Record, TurnQuery
from tenants.core import context
from tenants.core.errors import Invalid
from tenants.insight import period
from tenants.privacy import persons
from ui.api.records import verified
from ui.desk.rendering import Desk, may

PAGE = 50
_PATH = "/desk/audit"
_SHOWN_FAULTS = 50


_Words: TypeAlias = Annotated[str, Field(max_length=200)]
_Day: TypeAlias = Annotated[str, Field(max_length=10)]


class AuditForm(BaseModel):
    q: _Words = ""
    outcome: _Words = ""
    person: _Words = ""
    since: _Day = ""
    until: _Day = ""
    before: Annotated[int | None, Field(ge=0, le=2**63 - 1)] = None

    def query(self) -> TurnQuery:
        return TurnQuery(
            since=_begins(self.since),
            until=_begins(self.until, after=1),
            outcome=self.outcome or None,
            text=self.q.replace("\0", " ").strip() or None,
            person=persons.digest(context.current().tenant_id, self.person) if self.person else None,
            before=self.before,
        )


def router(desk: Desk) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=1000, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_audit(form: Annotated[AuditForm, Query()]) -> Response:
        try:
            return page(form, search.find(form.query(), limit=PAGE + 1))
        except Invalid as refused:
            return page(form, (), refused)

    @endpoints.post(f"{_PATH}/verify")
    @opens(scope="admin")
    async def verify() -> Response:
        found = await verified()
        newest = await to_thread(search.find, TurnQuery(), limit=PAGE + 1)
        return await to_thread(page, AuditForm(), newest, verified=found)

    def page(
        form: AuditForm,
        records: Sequence[Record],
        refused: Invalid | None = None,
        *,
        verified: Verification | None = None,
    ) -> Response:
        chosen = {name: value for name, value in form if value and name != "before"}
        return desk.page(
            "insight/audit.html",
            refused,
            section="insight",
            tab="audit",
            wanted=form,
            chosen=chosen,
            outcomes=get_args(Outcome),
            records=records[:PAGE],
            following=urlencode({**chosen, "before": records[PAGE - 1].sequence}) if len(records) > PAGE else "",
            first=form.before is None,
            verified=verified,
            shown_faults=_SHOWN_FAULTS,
            is_admin=may("admin"),
        )

    return endpoints


def _begins(written: str, *, after: int = 0) -> datetime | None:
    day = period.parsed_day(written)
    return period.of_day(day).bounds[after] if day else None
