"""`opora replay`: ask recorded turns again."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.ask.replay import Replay, ReplayedTurn, VisibleResult, report, trial
from tenants.audit import search
from ui.cli.records import Document, Last, Outcome, Reason, Since, Until, Words, selected
from ui.cli.terminal import (
    Json,
    for_tenant,
    print_json,
    progress_bar,
    read_json,
    terminal_console,
    texts,
)

message = texts("records")

_LAST = 100


@for_tenant
def replay(
    pipeline: Annotated[
        Path | None, typer.Option("--pipeline", help=message("help.pipeline"), exists=True, dir_okay=False)
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help=message("help.policy"), exists=True, dir_okay=False)
    ] = None,
    knowledge: Annotated[str | None, typer.Option("--knowledge", help=message("help.knowledge"))] = None,
    document: Document = None,
    since: Since = None,
    until: Until = None,
    outcome: Outcome = None,
    reason: Reason = None,
    words: Words = None,
    last: Last = _LAST,
    as_json: Json = False,
) -> None:
    fields = read_json(policy, "policy_unreadable", path=str(policy)) if policy else {}
    with progress_bar(message("replay.asking")) as update:
        records = search.find(selected(since, until, outcome, reason, document, words), limit=last)
        update(total=len(records))
        runner = Replay(trial(pipeline, fields, knowledge))
        turns = list(runner.run(records, lambda done: update(completed=done)))
        runner.close()
    summary = report(turns, total=len(records))
    if as_json:
        print_json(summary)
        return
    for turn in turns:
        if turn.changes:
            _print_turn(turn)
    typer.echo(message("replay.done", **{name: value for name, value in summary.items() if isinstance(value, int)}))


def _print_turn(turn: ReplayedTurn) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(turn.question), title_justify="left", expand=True)
    for name in ("before", "after"):
        table.add_column(message(f"replay.{name}"), ratio=1, overflow="fold")
    table.add_row(_outcome(turn.before), _outcome(turn.after))
    table.add_row(escape(turn.before.text), escape(turn.after.text))
    table.add_row(", ".join(turn.before.cited), ", ".join(turn.after.cited))
    terminal_console().print(table)
    if turn.drifted:
        typer.echo(message("replay.drifted"))


def _outcome(side: VisibleResult) -> str:
    return " / ".join(filter(None, (side.outcome, side.reason)))
