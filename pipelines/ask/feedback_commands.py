"""`opora feedback`: what people think of the answers, and evaluation cases made of it."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.ask.records_commands import Last, print_table, say
from pipelines.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json
from tenants.errors import Invalid

if TYPE_CHECKING:
    from tenants.feedback import Feedback, Thumb

feedback_app = typer.Typer(help=say("help.feedback"), no_args_is_help=True)

ThumbOption = Annotated[str | None, typer.Option("--thumb", help=say("help.thumb"))]

_SHOWN = 50


@feedback_app.command("list", help=say("help.feedback_list"))
def feedback_list(
    tenant: TenantOption = DEFAULT_TENANT, thumb: ThumbOption = None, last: Last = _SHOWN, as_json: Json = False
) -> None:
    """Print the newest verdicts."""
    wanted = _thumb(thumb)
    with acting_for(tenant):
        from tenants import feedback
        from tenants.audit import search

        given = feedback.latest(wanted, limit=last)
        found = [(one, search.get(one.turn_id).question or say("erased")) for one in given]
    if as_json:
        print_json([_as_json(one) | {"question": question} for one, question in found])
        return
    rows = (
        (
            f"{one.at:%F %T}",
            say(f"thumb.{one.thumb}"),
            say(f"thumb.{one.reason}") if one.reason else "",
            question,
            one.comment,
            one.turn_id,
        )
        for one, question in found
    )
    print_table(("at", "thumb", "reason", "question", "comment", "turn_id"), rows)


@feedback_app.command("cases", help=say("help.feedback_cases"))
def feedback_cases(tenant: TenantOption = DEFAULT_TENANT, thumb: ThumbOption = None) -> None:
    """Print a case for each judged turn, one a line."""
    wanted = _thumb(thumb)
    with acting_for(tenant):
        from pipelines.ask.feedback_cases import cases
        from tenants import feedback

        for case in cases(feedback.latest(wanted)):
            typer.echo(json.dumps(case, ensure_ascii=False))


def _thumb(given: str | None) -> "Thumb | None":
    from tenants.feedback import THUMBS

    if given is not None and given not in THUMBS:
        raise Invalid("thumb_unknown", thumb=given)
    return THUMBS[given] if given else None


def _as_json(one: "Feedback") -> dict[str, object]:
    from dataclasses import asdict

    return asdict(one) | {"at": one.at.isoformat()}
