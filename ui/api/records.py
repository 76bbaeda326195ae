"""The records over HTTP: `/audit` and `/gaps`, for operators. The gate has checked the token and set the tenant."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict
from starlette.responses import StreamingResponse

from components.turn import Outcome, Reason
from pipelines.ask.articles import gap_meanings
from pipelines.ask.insight import Format
from pipelines.gate import Route
from pipelines.pools import Pool
from pipelines.spreadsheet import csv_lines
from tenants.audit import search
from tenants.audit.chain import Link, Verification
from tenants.audit.entry import canonical
from tenants.audit.search import Record, TurnQuery
from tenants.core import context
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Gap
from tenants.privacy import persons
from ui.api.insight import download


class GapChange(BaseModel):
    """A change to a gap."""

    model_config = ConfigDict(extra="forbid")

    status: gaps.Status


_VERIFYING = Pool("audit", 1, turns=1)
_BODY_BYTES = 1_000
ROUTES = (
    Route("GET", "/audit", scope="operate"),
    Route("GET", "/audit/export", scope="admin", desk=True),
    Route("GET", "/audit/verify", scope="admin"),
    Route("GET", "/audit/{turn_id}", scope="operate"),
    Route("GET", "/gaps", scope="operate"),
    Route("PATCH", "/gaps/{gap_id}", scope="operate", body=GapChange, limit=_BODY_BYTES),
)

_OF_GROUPING = frozenset({"stems", "vector", "vector_of"})

router = APIRouter()


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is None:
        return moment and moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as out_of_range:
        raise ValueError("out of range") from out_of_range


_Day = Annotated[datetime | None, AfterValidator(_in_utc), Query(description="ISO 8601; without an offset: UTC")]
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
    """The matching recorded turns, newest first; pass `next` as `before` to get the following page."""
    person = persons.digest(context.current().tenant_id, subject) if subject else None
    query = TurnQuery(since, until, outcome, reason, document, cited, text, session_id, person, before)
    records = search.find(query, limit=limit)
    return {
        "records": [summary(record) for record in records],
        "next": records[-1].sequence if len(records) == limit else None,
    }


@router.get("/audit/export")
def export(since: _Day = None, until: _Day = None, format: Format = "jsonl") -> StreamingResponse:
    """The audit chain as JSON Lines, contents included, or its turns as a table for a spreadsheet."""
    return download(exported(format, since, until), format, "audit")


@router.get("/audit/verify")
async def verify_chain() -> dict[str, object]:
    """Verify the whole chain: its end, which is worth keeping elsewhere, and every fault. Takes as long as it is."""
    return asdict(await verified())


async def verified() -> Verification:
    """Verify the whole chain of the tenant. Raises `Busy` while another request does."""
    return await _VERIFYING.run({context.current().tenant_id: 1}, search.verify)


@router.get("/audit/{turn_id}")
def show_turn(turn_id: str) -> dict[str, object]:
    """One recorded turn with its full content."""
    return whole(search.get(turn_id))


@router.get("/gaps")
def list_gaps(
    status: Literal["open", "closed", "dismissed", "all"] = "open", text: Annotated[str, Query(max_length=200)] = ""
) -> dict[str, object]:
    """Questions that the knowledge base could not answer, grouped by meaning, most frequent first."""
    groups = gap_meanings.groups(None if status == "all" else status, text)
    return {
        "groups": [
            {"count": group.count, "doc_ids": group.doc_ids, "gaps": [gap_as_json(gap) for gap in group.gaps]}
            for group in groups
        ]
    }


@router.patch("/gaps/{gap_id}")
def set_gap(gap_id: str, change: GapChange) -> dict[str, object]:
    """Close a gap, dismiss it, or open it again."""
    return gap_as_json(gaps.decide([gap_id], change.status)[0])


def summary(record: Record) -> dict[str, object]:
    """A recorded turn as a list entry. The question is None once it has been erased."""
    return {
        "sequence": record.sequence,
        "turn_id": record.turn_id,
        "at": record.at.isoformat(),
        "outcome": record.outcome,
        "reason": record.reason,
        "question": record.question,
        "erased": record.content is None,
    }


def whole(record: Record) -> dict[str, object]:
    """A recorded turn with its content, which is None once it has been erased."""
    return {**summary(record), "person": record.person, "hash": record.hash, "content": record.content}


def exported(kind: Format, since: datetime | None, until: datetime | None) -> Iterator[str]:
    """The chain, one link per line, with everything needed to verify it elsewhere; as CSV what people read of it."""
    links = search.links(since, until)
    if kind == "csv":
        return csv_lines(_COLUMNS, (_row(link) for link in links if link.kind == "turn"))
    return (f"{canonical(_link_as_json(link))}\n" for link in links)


def gap_as_json(gap: Gap) -> dict[str, object]:
    """A gap without the stems and the vector used for grouping."""
    moments = {"first_at": gap.first_at, "last_at": gap.last_at, "closed_at": gap.closed_at}
    times = {name: at.isoformat() if at else None for name, at in moments.items()}
    return {name: value for name, value in asdict(gap).items() if name not in _OF_GROUPING} | times


_COLUMNS = ("at", "turn_id", "outcome", "reason", "session_id", "person", "question", "answer", "erased")


def _row(link: Link) -> tuple[object, ...]:
    content = link.content
    question, answer = search.words(link)
    person, session_id = (content.person, content.session_id) if content else ("", "")
    about = (link.at.isoformat(), link.turn_id, link.outcome, link.reason or "", session_id, person)
    return (*about, question, answer, content is None)


def _link_as_json(link: Link) -> dict[str, object]:
    return asdict(link) | {"at": link.at.isoformat()}
