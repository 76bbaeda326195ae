"""`opora insight`: metrics of a period, and its chats."""

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from pipelines.ask import insight
from pipelines.ask.insight import Insight
from tenants.insight.chats import Result
from ui.cli.terminal import CommandGroup, texts, write_lines

group = CommandGroup("records", prefix="insight_")
message = group.message
outcome_text = texts("cli.outcome")

_RATED: tuple[Result, ...] = ("autonomous", "assisted", "reopened", "unresolved")
_DAY = ["%Y-%m-%d"]
First = Annotated[datetime | None, typer.Option("--since", formats=_DAY, help=message("help.first_day"))]
Last = Annotated[datetime | None, typer.Option("--until", formats=_DAY, help=message("help.last_day"))]
Days = Annotated[int, typer.Option("--days", min=1, max=366, help=message("help.days"))]


def _print_insight(shown: Insight) -> None:
    span, tally = shown.period, shown.chats.tally
    typer.echo(message("insight.period", first=f"{span.first}", last=f"{span.last}", zone=span.zone))
    rows = ((message(f"insight.{result}"), tally.of(result), _share(tally.rate(result))) for result in _RATED)
    group.print_columns(("result", "chats", "share"), [*rows, (message("insight.open"), tally.open, "")])
    typer.echo(message("insight.provisional", count=tally.provisional))
    typer.echo(message("insight.csat", share=_share(shown.chats.csat), count=shown.chats.rated))
    turns = ((outcome_text(outcome), count) for outcome, count in shown.turns.by_outcome.items())
    group.print_columns(("outcome", "turns"), turns)


@group.tenant_command("show", show=_print_insight, form=insight.as_json)
def insight_show(since: First = None, until: Last = None, days: Days = 28) -> Insight:
    return insight.insight(_day(since), _day(until), days)


@group.tenant_command("export")
def insight_export(
    since: First = None,
    until: Last = None,
    days: Days = 28,
    kind: Annotated[str, typer.Option("--format", help=message("help.format"))] = "jsonl",
    out: Annotated[Path | None, typer.Option("--out", help=message("help.out"), dir_okay=False)] = None,
) -> None:
    write_lines(insight.exported(insight.checked(kind), _day(since), _day(until), days), out)


def _day(moment: datetime | None) -> date | None:
    return moment.date() if moment is not None else None


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
