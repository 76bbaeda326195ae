"""`/insight` over HTTP: metrics of a period for operators, and its chats for admins; `/evaluation/runs`."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from typing import Annotated, TypeAlias

from fastapi import Query
from starlette.responses import StreamingResponse

from pipelines.ask.insight import DAYS, MEDIA_TYPES, Format, as_json, exported, insight
from pipelines.routes import OpenRouter, opens
from tenants.desk import evaluations
from tenants.insight.period import MOST_DAYS

Since: TypeAlias = Annotated[date | None, Query(description="The first day, in the zone of the opening hours.")]
Until: TypeAlias = Annotated[date | None, Query(description="The last day; without it, today.")]
Days: TypeAlias = Annotated[int, Query(ge=1, le=MOST_DAYS, description="Number of days, if one end is left open.")]

router = OpenRouter("operate", desk=True, tags=["records"])


@router.get("/insight")
def show_insight(since: Since = None, until: Until = None, days: Days = DAYS) -> dict[str, object]:
    """Return metrics of chats and turns: results and rates, ratings, waiting times, outcomes, cited and missing
    documents.
    """
    return as_json(insight(since, until, days))


@router.get("/insight/chats")
@opens(scope="admin")
def export_chats(
    since: Since = None, until: Until = None, days: Days = DAYS, format: Format = "jsonl"
) -> StreamingResponse:
    """Export the chats of a period, one per line, without customer identities."""
    return download(exported(format, since, until, days), format, "chats")


@router.get("/evaluation/runs")
@opens(scope="ingest")
def list_evaluation_runs() -> dict[str, object]:
    """List the results of `opora evaluate` for the knowledge base, newest run first."""
    return {"runs": [asdict(run) for run in evaluations.newest()]}


def download(lines: Iterator[str], kind: Format, name: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"', "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(lines, media_type=MEDIA_TYPES[kind], headers=headers)
