"""`opora replay`: ask recorded turns again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenants.core.errors import Invalid
from ui.cli.records import Document, Last, Outcome, Reason, Since, Until, Words, message, selected
from ui.cli.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json, progress_bar, terminal_console

if TYPE_CHECKING:
    from pipelines.ask.replay import ReplayedTurn, VisibleResult

_LAST = 100


def replay(
    tenant: TenantOption = DEFAULT_TENANT,
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
    """Ask recorded turns again and print those with a change that a visitor would notice."""
    with acting_for(tenant), progress_bar(message("replay.asking")) as progress:
        from pipelines.ask.replay import Replay, report, trial
        from tenants.audit import search

        records = search.find(selected(since, until, outcome, reason, document, words), limit=last)
        progress.update(progress.task_ids[0], total=len(records))
        runner = Replay(trial(pipeline, _fields(policy), knowledge))
        turns = list(runner.run(records, lambda done: progress.update(progress.task_ids[0], completed=done)))
        runner.close()
    summary = report(turns, total=len(records))
    if as_json:
        print_json(summary)
        return
    for turn in turns:
        if turn.changes:
            _print_turn(turn)
    typer.echo(message("replay.done", **{name: value for name, value in summary.items() if isinstance(value, int)}))


def _fields(path: Path | None) -> Mapping[str, object]:
    if path is None:
        return {}
    try:
        policy = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as broken:
        raise Invalid("policy_unreadable", path=str(path)) from broken
    if not isinstance(policy, dict):
        raise Invalid("policy_unreadable", path=str(path))
    return policy


def _print_turn(turn: "ReplayedTurn") -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(turn.question), title_justify="left", expand=True)
    for name in ("before", "after"):
        table.add_column(message(f"replay.{name}"), ratio=1, overflow="fold")
    table.add_row(_outcome(turn.before), _outcome(turn.after))
    table.add_row(escape(turn.before.text), escape(turn.after.text))
    table.add_row(_documents(turn.before), _documents(turn.after))
    terminal_console().print(table)
    if turn.drifted:
        typer.echo(message("replay.drifted"))


def _outcome(side: "VisibleResult") -> str:
    return " / ".join(filter(None, (side.outcome, side.reason)))


def _documents(side: "VisibleResult") -> str:
    return ", ".join(dict.fromkeys(doc_id for doc_id, _ in side.citations))
