"""`opora feedback`: people's verdicts on answers, and evaluation cases built from them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tenants.core.errors import Invalid
from ui.cli.records import Last, message, print_table
from ui.cli.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json

if TYPE_CHECKING:
    from tenants.desk.feedback import Feedback, Thumb

feedback_app = typer.Typer(help=message("help.feedback"), no_args_is_help=True)

ThumbOption = Annotated[str | None, typer.Option("--thumb", help=message("help.thumb"))]

_SHOWN = 50


@feedback_app.command("list", help=message("help.feedback_list"))
def feedback_list(
    tenant: TenantOption = DEFAULT_TENANT, thumb: ThumbOption = None, last: Last = _SHOWN, as_json: Json = False
) -> None:
    """Print the newest verdicts."""
    direction = _thumb(thumb)
    with acting_for(tenant):
        from tenants.audit import search
        from tenants.desk import feedback

        verdicts = feedback.latest(direction, limit=last)
        judged = [(verdict, search.get(verdict.turn_id).question or message("erased")) for verdict in verdicts]
    if as_json:
        print_json([_as_json(verdict) | {"question": question} for verdict, question in judged])
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
    print_table(("at", "thumb", "reason", "question", "comment", "turn_id"), rows)


@feedback_app.command("cases", help=message("help.feedback_cases"))
def feedback_cases(tenant: TenantOption = DEFAULT_TENANT, thumb: ThumbOption = None) -> None:
    """Print an evaluation case for each rated turn, one per line."""
    direction = _thumb(thumb)
    with acting_for(tenant):
        from pipelines.ask.feedback_cases import cases
        from tenants.desk import feedback

        for case in cases(feedback.latest(direction)):
            typer.echo(json.dumps(case, ensure_ascii=False))


def _thumb(name: str | None) -> "Thumb | None":
    from tenants.desk.feedback import THUMBS

    if name is not None and name not in THUMBS:
        raise Invalid("thumb_unknown", thumb=name)
    return THUMBS[name] if name else None


def _as_json(verdict: "Feedback") -> dict[str, object]:
    from dataclasses import asdict

    return asdict(verdict) | {"at": verdict.at.isoformat()}
