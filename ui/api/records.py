"""The records over HTTP: `/audit`, for operators. The gate has checked the token and set the tenant."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator
from starlette.responses import StreamingResponse

from components.turn import Outcome, Reason
from pipelines.ask.insight import Format
from pipelines.fair_requests import give_up_turn
from pipelines.pools import Pool
from pipelines.routes import OpenRouter, opens
from pipelines.spreadsheet import csv_lines
from tenants.audit import search
from tenants.audit.chain import Link, Verification
from tenants.audit.entry import canonical
from tenants.audit.search import Record, TurnQuery
from tenants.core import context
from tenants.privacy import persons
from ui.api.insight import download

_VERIFYING = Pool("audit", 1, turns=1)

router = OpenRouter("operate")


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a moment in UTC, which is the zone of one without an offset. Raises `ValueError`."""
    if moment is None or moment.tzinfo is None:
        return moment and moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as out_of_range:
        raise ValueError("out of range") from out_of_range


_Day = Annotated[datetime | None, AfterValidator(in_utc), Query(description="ISO 8601; without an offset: UTC")]
_Before = Annotated[int | None, Query(ge=0, le=2**63 - 1)]
_Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/audit")
def list_turns(
    since: _Day = None,
    until: _Day = None,
    outcome: Outcome | None = None,
    reason: Reason | None = None,
    document: str | None = None,
    cited: bool = False,
    text: str | None = None,
    session_id: str | None = None,
    subject: str | None = None,
    before: _Before = None,
    limit: _Limit = 50,
) -> dict[str, object]:
    """List the matching recorded turns, newest first. Pass `next` as `before` to get the following page."""
    person = persons.digest(context.current().tenant_id, subject) if subject else None
    query = TurnQuery(since, until, outcome, reason, document, cited, text, session_id, person, before)
    records = search.find(query, limit=limit)
    return {
        "records": [summary(record) for record in records],
        "next": records[-1].sequence if len(records) == limit else None,
    }


@router.get("/audit/export")
@opens(scope="admin", desk=True)
def export(since: _Day = None, until: _Day = None, format: Format = "jsonl") -> StreamingResponse:
    """Export the audit chain as JSON Lines, contents included, or its turns as a table for a spreadsheet."""
    return download(exported(format, since, until), format, "audit")


@router.get("/audit/verify")
@opens(scope="admin")
async def verify_chain() -> dict[str, object]:
    """Verify the whole chain. Returns its head, which is worth storing elsewhere, and every fault. Takes time
    proportional to its length.
    """
    return asdict(await verified())


async def verified() -> Verification:
    """Verify the whole chain of the tenant. Raises `Busy` while another request is doing so."""
    give_up_turn()
    return await _VERIFYING.run({context.current().tenant_id: 1}, search.verify)


@router.get("/audit/{turn_id}")
def show_turn(turn_id: str) -> dict[str, object]:
    """Return one recorded turn with its full content."""
    return whole(search.get(turn_id))


def summary(record: Record) -> dict[str, object]:
    """Return a recorded turn as a list entry. Erasure sets the question to None."""
    return {
        "sequence": record.sequence,
        "turn_id": record.turn_id,
        "at": record.at,
        "outcome": record.outcome,
        "reason": record.reason,
        "question": record.question,
        "erased": record.content is None,
    }


def whole(record: Record) -> dict[str, object]:
    """Return a recorded turn with its content; erasure sets it to None."""
    return {**summary(record), "person": record.person, "hash": record.hash, "content": record.content}


def exported(kind: Format, since: datetime | None, until: datetime | None) -> Iterator[str]:
    """Export the chain, one link per line, with everything needed to verify it elsewhere; as CSV, only the readable
    fields.
    """
    links = search.links(since, until)
    if kind == "csv":
        return csv_lines(_COLUMNS, (_row(link) for link in links if link.kind == "turn"))
    return (f"{canonical(asdict(link) | {'at': link.at.isoformat()})}\n" for link in links)


_COLUMNS = ("at", "turn_id", "outcome", "reason", "session_id", "person", "question", "answer", "erased")


def _row(link: Link) -> tuple[object, ...]:
    content = link.content
    question, answer = search.words(link)
    person, session_id = (content.person, content.session_id) if content else ("", "")
    about = (link.at.isoformat(), link.turn_id, link.outcome, link.reason or "", session_id, person)
    return (*about, question, answer, content is None)
