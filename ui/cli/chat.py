"""`opora chat`: operator actions from the terminal."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tenants.chats.records import Chat


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"chats.{key}", terminal_locale(), **params)


_EXAMPLE = '{"zone": "Europe/Moscow", "week": {"mon": ["09:00-18:00"]}, "holidays": ["2027-01-01"]}'
chat_app = typer.Typer(cls=Group, help=message("help.chat"), no_args_is_help=True)
ChatId = Annotated[str, typer.Argument(help=message("help.chat_id"))]
Text = Annotated[str, typer.Argument(help=message("help.text"))]
Name = Annotated[str, typer.Option("--name", help=message("help.name"))]


@chat_app.command("list", help=message("help.list"))
def chat_list(
    state: Annotated[str, typer.Option(help=message("help.state"))] = "",
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """List chats, most recently used first."""
    from tenants.chats import store
    from tenants.chats.transitions import STATES

    wanted = next((one for one in STATES if one == state), None)
    if state and wanted is None:
        raise Invalid("state_unknown", state=state, states=", ".join(STATES))
    with acting_for(tenant):
        found = store.latest(state=wanted, limit=limit)
        if as_json:
            from pipelines.ask.chats.contract import desk_chat_part

            print_json([desk_chat_part(one).model_dump(mode="json") for one in found])
            return
    from rich.table import Table

    table = Table(message("column.chat"), message("column.state"), message("column.assignee"), message("column.reason"))
    for one in found:
        table.add_row(one.chat_id, message(f"state.{one.state}"), one.assignee or "", one.reason)
    terminal_console().print(table)


@chat_app.command("show", help=message("help.show"))
def chat_show(chat_id: ChatId, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Show a chat with its messages and notes."""
    with acting_for(tenant):
        from pipelines.ask.chats import transcript
        from tenants.chats import store
        from ui.api.desk import thread

        chat = store.get(chat_id)
        if as_json:
            print_json(thread(chat).model_dump(mode="json"))
            return
        typer.echo(transcript.written(chat, notes=True), nl=False)
    _print_state(chat)


@chat_app.command("reply", help=message("help.reply"))
def chat_reply(
    chat_id: ChatId, words: Text, name: Name = "", tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False
) -> None:
    """Send a reply to the customer and take the chat."""
    with acting_for(tenant):
        from tenants.chats import store
        from ui.api.desk import posted_part

        posted = store.reply(chat_id, words, seen=store.get(chat_id).last_seq, name=name)
        _print(posted_part(posted), posted.chat, as_json=as_json)


@chat_app.command("note", help=message("help.note"))
def chat_note(
    chat_id: ChatId, words: Text, name: Name = "", tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False
) -> None:
    """Add a note for operators."""
    with acting_for(tenant):
        from tenants.chats import store
        from ui.api.desk import posted_part

        posted = store.note(chat_id, words, name=name)
        _print(posted_part(posted), posted.chat, as_json=as_json)


@chat_app.command("take", help=message("help.take"))
def chat_take(chat_id: ChatId, name: Name = "", tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Take a chat."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.take(chat_id, name=name), as_json=as_json)


@chat_app.command("transfer", help=message("help.transfer"))
def chat_transfer(
    chat_id: ChatId,
    operator: Annotated[str, typer.Argument(help=message("help.operator"))],
    name: Name = "",
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Transfer a chat to another operator."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.transfer(chat_id, operator, name=name), as_json=as_json)


@chat_app.command("hand-back", help=message("help.hand_back"))
def chat_hand_back(chat_id: ChatId, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Return a chat to the assistant."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.hand_back(chat_id), as_json=as_json)


@chat_app.command("snooze", help=message("help.snooze"))
def chat_snooze(
    chat_id: ChatId,
    hours: Annotated[float, typer.Option(min=0.01, max=24 * 366, help=message("help.hours"))] = 24,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Snooze a chat."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.snooze(chat_id, datetime.now(UTC) + timedelta(hours=hours)), as_json=as_json)


@chat_app.command("resolve", help=message("help.resolve"))
def chat_resolve(chat_id: ChatId, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Close a chat."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.resolve(chat_id), as_json=as_json)


@chat_app.command("reopen", help=message("help.reopen"))
def chat_reopen(chat_id: ChatId, name: Name = "", tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Reopen a closed chat."""
    with acting_for(tenant):
        from tenants.chats import store

        _print_chat(store.reopen(chat_id, name=name), as_json=as_json)


@chat_app.command("undo", help=message("help.undo"))
def chat_undo(chat_id: ChatId, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Undo the last change of a chat."""
    with acting_for(tenant):
        from tenants.chats.undo import undo

        _print_chat(undo(chat_id), as_json=as_json)


@chat_app.command("hours", help=message("help.hours_of", example=_EXAMPLE))
def chat_hours(
    file: Annotated[
        Path | None, typer.Option("--set", exists=True, dir_okay=False, help=message("help.set_hours"))
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help=message("help.clear_hours"))] = False,
    site: Annotated[str, typer.Option("--site", help=message("help.hours_site"))] = "",
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Set the working hours, if given, and show the effective ones."""
    with acting_for(tenant):
        from tenants.accounts.hours import Hours
        from tenants.chats import sites
        from ui.api.hours import hours_answer

        if file is not None:
            try:
                chosen = Hours.model_validate_json(file.read_bytes())
            except ValidationError as unfit:
                place = ".".join(map(str, unfit.errors()[0]["loc"])) or file.name
                raise Invalid("hours_invalid", field=place) from unfit
            sites.set_hours(site, chosen)
        elif clear:
            sites.set_hours(site, None)
        print_json(hours_answer(site).model_dump(mode="json"))


def _print_chat(chat: "Chat", *, as_json: bool) -> None:
    from pipelines.ask.chats.contract import desk_chat_part

    _print(desk_chat_part(chat), chat, as_json=as_json)


def _print(part: "BaseModel", chat: "Chat", *, as_json: bool) -> None:
    if as_json:
        print_json(part.model_dump(mode="json"))
    else:
        _print_state(chat)


def _print_state(chat: "Chat") -> None:
    typer.echo(message("now", chat_id=chat.chat_id, state=message(f"state.{chat.state}")))
