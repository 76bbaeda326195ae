"""`opora feedback`: people's verdicts on answers, and evaluation cases built from them."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pipelines.ask.feedback_cases import cases
from tenants.audit import search
from tenants.core.errors import Invalid
from tenants.desk import feedback
from tenants.desk.feedback import THUMBS, Thumb
from ui.cli.records import Last
from ui.cli.terminal import CommandGroup, Json, print_json, print_table

group = CommandGroup("records", prefix="feedback_")
message = group.message

ThumbOption = Annotated[str | None, typer.Option("--thumb", help=message("help.thumb"))]

_SHOWN = 50


@group.tenant_command("list")
def feedback_list(thumb: ThumbOption = None, last: Last = _SHOWN, as_json: Json = False) -> None:
    """Print the newest verdicts."""
    verdicts = feedback.latest(_thumb(thumb), limit=last)
    judged = [(verdict, search.get(verdict.turn_id).question or message("erased")) for verdict in verdicts]
    if as_json:
        print_json([asdict(verdict) | {"question": question} for verdict, question in judged])
        return
    rows = (
        (
            f"{verdict.at:%F %T}",
            message(f"thumb.{verdict.thumb}"),
            message(f"thumb.{verdict.reason}") if verdict.reason else "",
            question,
            verdict.comment,
            verdict.turn_id,
        )
        for verdict, question in judged
    )
    columns = ("at", "thumb", "reason", "question", "comment", "turn_id")
    print_table((message(f"column.{name}") for name in columns), rows)


@group.tenant_command("cases")
def feedback_cases(thumb: ThumbOption = None) -> None:
    """Print an evaluation case for each rated turn, one per line."""
    for case in cases(feedback.latest(_thumb(thumb))):
        typer.echo(json.dumps(case, ensure_ascii=False))


def _thumb(name: str | None) -> Thumb | None:
    if name is not None and name not in THUMBS:
        raise Invalid("thumb_unknown", thumb=name)
    return THUMBS[name] if name else None
