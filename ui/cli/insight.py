"""`opora insight`: metrics of a period, and its chats."""

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ui.cli.records import message, print_table, write_lines
from ui.cli.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json

if TYPE_CHECKING:
    from tenants.insight.chats import Result

insight_app = typer.Typer(help=message("help.insight"), no_args_is_help=True)

_RATED: "tuple[Result, ...]" = ("autonomous", "assisted", "reopened", "unresolved")
_DAY = ["%Y-%m-%d"]
First = Annotated[datetime | None, typer.Option("--since", formats=_DAY, help=message("help.first_day"))]
Last = Annotated[datetime | None, typer.Option("--until", formats=_DAY, help=message("help.last_day"))]
Days = Annotated[int, typer.Option("--days", min=1, max=366, help=message("help.days"))]


@insight_app.command("show", help=message("help.insight_show"))
def insight_show(
    tenant: TenantOption = DEFAULT_TENANT,
    since: First = None,
    until: Last = None,
    days: Days = 28,
    as_json: Json = False,
) -> None:
    """Print the metrics of a period."""
    with acting_for(tenant):
        from pipelines.ask import insight

        shown = insight.insight(_day(since), _day(until), days)
    if as_json:
        print_json(insight.as_json(shown))
        return
    span, tally = shown.period, shown.chats.tally
    typer.echo(message("insight.period", first=f"{span.first}", last=f"{span.last}", zone=span.zone))
    rows = ((message(f"insight.{result}"), str(tally.of(result)), _share(tally.rate(result))) for result in _RATED)
    print_table(("result", "chats", "share"), [*rows, (message("insight.open"), str(tally.open), "")])
    typer.echo(message("insight.provisional", count=tally.provisional))
    typer.echo(message("insight.csat", share=_share(shown.chats.csat), count=shown.chats.rated))
    print_table(("outcome", "turns"), ((name, str(count)) for name, count in shown.turns.by_outcome.items()))


@insight_app.command("export", help=message("help.insight_export"))
def insight_export(
    tenant: TenantOption = DEFAULT_TENANT,
    since: First = None,
    until: Last = None,
    days: Days = 28,
    kind: Annotated[str, typer.Option("--format", help=message("help.format"))] = "jsonl",
    out: Annotated[Path | None, typer.Option("--out", help=message("help.out"), dir_okay=False)] = None,
) -> None:
    """Export the chats of a period, one per line."""
    with acting_for(tenant):
        from pipelines.ask import insight

        write_lines(insight.exported(insight.checked(kind), _day(since), _day(until), days), out)


def _day(moment: datetime | None) -> date | None:
    return moment.date() if moment is not None else None


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
