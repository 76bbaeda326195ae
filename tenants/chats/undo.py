"""Undo of an operator's last change of a chat.

A change by an operator stores the previous state. The same person can undo it for two minutes, and only until the next
change of the chat, such as a customer's message to an ended chat. Messages that customers and webhooks have received
are not withdrawn; both are notified that the chat continues.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from tenants.chats.change import Change, changing
from tenants.chats.records import Chat, chat_of
from tenants.chats.tables import ChatRow, TicketRow
from tenants.core import context
from tenants.core.errors import Conflict

if TYPE_CHECKING:
    from tenants.core.json import Json

    Kept: TypeAlias = Mapping[str, Json]
else:
    Kept: TypeAlias = Mapping

WITHIN = timedelta(minutes=2)

_FIELDS = ("state", "assignee", "ticket_id", "reopened", "failures")
_MOMENTS = ("waiting_since", "snoozed_until", "resolved_at")


@contextmanager
def undoable(change: Change) -> Iterator[None]:
    """Return the change of a chat that the caller may undo."""
    row = change.row
    before, version = _kept(row), row.version
    yield
    if row.version != version:
        now = datetime.now(UTC).isoformat()
        row.undo = {"version": row.version, "by": context.current().subject, "at": now, **before}


def undo(chat_id: str) -> Chat:
    """Restore the chat to the state before the caller's last change. Raises `Conflict` with `nothing_to_undo`."""
    with changing(chat_id) as change:
        row = change.row
        kept = row.undo
        if kept is None or not is_possible(chat_of(row)):
            raise Conflict("nothing_to_undo", state=row.state, version=row.version)
        _restore(change, kept)
        return chat_of(row)


def is_possible(chat: Chat, now: datetime | None = None) -> bool:
    """Whether the caller may take back the last change of a chat."""
    mark = chat.undo
    return (
        mark is not None
        and mark.version == chat.version
        and mark.by == context.current().subject
        and (now or datetime.now(UTC)) - mark.at <= WITHIN
    )


def _kept(row: ChatRow) -> Kept:
    moments = {name: getattr(row, name) for name in _MOMENTS}
    plain = {name: moment.isoformat() if moment is not None else None for name, moment in moments.items()}
    return {**{name: getattr(row, name) for name in _FIELDS}, **plain}


def _restore(change: Change, before: Kept) -> None:
    row, undone = change.row, change.row.state
    for name in _FIELDS:
        setattr(row, name, before[name])
    for name in _MOMENTS:
        moment = before[name]
        setattr(row, name, datetime.fromisoformat(str(moment)) if moment is not None else None)
    if row.ticket_id is not None:
        ticket = change.session.find(TicketRow, row.ticket_id)
        if ticket is not None:
            ticket.closed_at = None
    row.version += 1
    row.undo = None
    change.add("system", "event", "", body={"event": "undone", "operator": context.current().subject})
    change.enqueue("chat.state", {"before": undone})
