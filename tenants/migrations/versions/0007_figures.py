"""Store the outcome of chats in their rows, for statistics; for existing chats, derive it from their messages."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_MOMENTS = ("asked_at", "answered_at", "requested_at", "replied_at", "returned_at")
_PAUSE, _RETURN = timedelta(hours=24), timedelta(days=7)
_NO_MATTER = ("irrelevant", "nonsense", "blocked")
_AT_ONCE = 500

_CHATS = sa.table("chats", *map(sa.column, ("tenant_id", "chat_id", *_MOMENTS, "outcome", "outcome_reason")))
_MESSAGES = sa.table(
    "chat_messages",
    *map(sa.column, ("tenant_id", "chat_id", "seq", "author", "kind", "turn_id")),
    sa.column("body", sa.JSON),
    sa.column("created_at", sa.DateTime),
)


def upgrade() -> None:
    """Add the columns and fill them."""
    for name in _MOMENTS:
        op.add_column("chats", sa.Column(name, sa.DateTime))
    op.add_column("chats", sa.Column("outcome", sa.String(32), nullable=False, server_default=""))
    op.add_column("chats", sa.Column("outcome_reason", sa.String(64), nullable=False, server_default=""))
    op.create_index("ix_chats_asked", "chats", ["tenant_id", "asked_at"])
    fill()


def fill() -> None:
    """Fill the columns of all chats."""
    connection = op.get_bind()
    keys = connection.execute(sa.select(_CHATS.c.tenant_id, _CHATS.c.chat_id).order_by(*_CHATS.c[:2])).all()
    for start in range(0, len(keys), _AT_ONCE):
        stretch = keys[start : start + _AT_ONCE]
        _fill_stretch(connection, tuple(stretch[0]), tuple(stretch[-1]))


def _fill_stretch(connection: sa.Connection, first: tuple[str, ...], last: tuple[str, ...]) -> None:
    """Fill the columns of the chats between two keys, both included."""
    columns = _MESSAGES.c
    chat = sa.tuple_(columns.tenant_id, columns.chat_id)
    query = sa.select(_MESSAGES).where(chat >= sa.tuple_(*first), chat <= sa.tuple_(*last))
    messages = connection.execute(query.order_by(columns.tenant_id, columns.chat_id, columns.seq)).all()
    for (tenant_id, chat_id), said in groupby(messages, key=lambda one: (one.tenant_id, one.chat_id)):
        own = (_CHATS.c.tenant_id == tenant_id, _CHATS.c.chat_id == chat_id)
        if noted := _progress(said):
            connection.execute(sa.update(_CHATS).where(*own).values(noted))


def _progress(messages: Iterable[sa.Row[tuple[object, ...]]]) -> dict[str, datetime | str]:
    """Return the values that `tenants.chats.progress` would have stored at the time of this migration."""
    noted: dict[str, datetime | str] = {}
    ended: datetime | None = None
    before: datetime | None = None
    with_person = resolved = False
    for one in messages:
        at, event = one.created_at, (one.body or {}).get("event") if one.kind == "event" else None
        if ended is None and before is not None and not with_person and at - before >= _PAUSE:
            ended = before
        # A reopening by an operator shows in the next event: they join, or resolve the chat again.
        if one.author == "customer" or event == "queued" or (resolved and event in ("joined", "resolved")):
            if ended is not None and at - ended <= _RETURN:
                noted.setdefault("returned_at", at)
            ended, resolved = None, False
        if event in ("queued", "woken", "joined", "queue_timed_out"):
            with_person = True
        elif event in ("handed_back", "resolved"):
            with_person, resolved = False, event == "resolved"
            ended = at if resolved else None
        if one.author == "customer":
            noted.setdefault("asked_at", at)
        elif event == "queued":
            noted.setdefault("requested_at", at)
        elif one.author == "operator" and one.kind == "text":
            noted.setdefault("replied_at", at)
        elif one.author == "bot" and one.turn_id:
            noted.setdefault("answered_at", at)
            turn = (one.body or {}).get("turn") or {}
            if "outcome" not in noted or turn.get("outcome") not in _NO_MATTER:
                noted["outcome"] = turn.get("outcome") or ""
                noted["outcome_reason"] = turn.get("refusal_reason") or ""
        before = at
    return noted
