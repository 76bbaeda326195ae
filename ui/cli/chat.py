"""`opora chat`: operator actions from the terminal."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text_or
from pipelines.ask.chats import transcript
from pipelines.ask.chats.contract import DeskChatPart, desk_chat_part
from tenants.chats import store, undo
from tenants.chats.transitions import STATES
from tenants.core.errors import Invalid
from ui.api.desk import DeskPostedAnswer, DeskThreadAnswer, posted_part, thread
from ui.cli.terminal import CommandGroup

group = CommandGroup("chats")
message = group.message

ChatId = Annotated[str, typer.Argument(help=message("help.chat_id"))]
Text = Annotated[str, typer.Argument(help=message("help.text"))]
Name = Annotated[str, typer.Option("--name", help=message("help.name"))]


def _print_chats(found: list[DeskChatPart]) -> None:
    def row(one: DeskChatPart) -> tuple[str | None, ...]:
        reason = text_or(one.reason, f"desk.reason.{one.reason}", terminal_locale())
        return one.chat_id, message(f"state.{one.state}"), one.assignee, reason

    group.print_columns(("chat", "state", "assignee", "reason"), map(row, found))


def _print_state(chat: DeskChatPart) -> None:
    typer.echo(message("now", chat_id=chat.chat_id, state=message(f"state.{chat.state}")))


def _print_posted(posted: DeskPostedAnswer) -> None:
    _print_state(posted.chat)


def _print_thread(shown: DeskThreadAnswer) -> None:
    typer.echo(transcript.written(store.get(shown.chat.chat_id), notes=True), nl=False)
    _print_state(shown.chat)


@group.tenant_command("list", show=_print_chats)
def chat_list(
    state: Annotated[str, typer.Option(help=message("help.state"))] = "",
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
) -> list[DeskChatPart]:
    wanted = next((one for one in STATES if one == state), None)
    if state and wanted is None:
        raise Invalid("state_unknown", state=state, states=", ".join(STATES))
    return [desk_chat_part(one) for one in store.latest(state=wanted, limit=limit)]


@group.tenant_command("show", show=_print_thread)
def chat_show(chat_id: ChatId) -> DeskThreadAnswer:
    return thread(store.get(chat_id))


@group.tenant_command("reply", show=_print_posted)
def chat_reply(chat_id: ChatId, words: Text, name: Name = "") -> DeskPostedAnswer:
    return posted_part(store.reply(chat_id, words, seen=store.get(chat_id).last_seq, name=name))


@group.tenant_command("note", show=_print_posted)
def chat_note(chat_id: ChatId, words: Text, name: Name = "") -> DeskPostedAnswer:
    return posted_part(store.note(chat_id, words, name=name))


@group.tenant_command("take", show=_print_state)
def chat_take(chat_id: ChatId, name: Name = "") -> DeskChatPart:
    return desk_chat_part(store.take(chat_id, name=name))


@group.tenant_command("transfer", show=_print_state)
def chat_transfer(
    chat_id: ChatId, operator: Annotated[str, typer.Argument(help=message("help.operator"))], name: Name = ""
) -> DeskChatPart:
    return desk_chat_part(store.transfer(chat_id, operator, name=name))


@group.tenant_command("hand-back", show=_print_state)
def chat_hand_back(chat_id: ChatId) -> DeskChatPart:
    return desk_chat_part(store.hand_back(chat_id))


@group.tenant_command("snooze", show=_print_state)
def chat_snooze(
    chat_id: ChatId,
    hours: Annotated[float, typer.Option(min=0.01, max=24 * 366, help=message("help.hours"))] = 24,
) -> DeskChatPart:
    return desk_chat_part(store.snooze(chat_id, datetime.now(UTC) + timedelta(hours=hours)))


@group.tenant_command("resolve", show=_print_state)
def chat_resolve(chat_id: ChatId) -> DeskChatPart:
    return desk_chat_part(store.resolve(chat_id))


@group.tenant_command("reopen", show=_print_state)
def chat_reopen(chat_id: ChatId, name: Name = "") -> DeskChatPart:
    return desk_chat_part(store.reopen(chat_id, name=name))


@group.tenant_command("undo", show=_print_state)
def chat_undo(chat_id: ChatId) -> DeskChatPart:
    return desk_chat_part(undo.undo(chat_id))
