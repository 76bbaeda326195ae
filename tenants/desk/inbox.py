"""Inbox of operators: views of the tenant's chats, with search, pages and counts.

Waiting chats are ordered by high stakes, then by the longest wait, then by the lowest confidence of the assistant; all
others by their last activity. A page starts after the last row of the previous one, so rows that appear or disappear
meanwhile cause no duplicates.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, Select, String, and_, bindparam, case, func, or_, select, tuple_
from sqlalchemy.sql.elements import SQLColumnExpression

from tenants.chats.change import messages_of
from tenants.chats.records import Chat, Message, chat_of, message_of
from tenants.chats.tables import ChatMessageRow, ChatRow
from tenants.core import context
from tenants.core.errors import Busy, Invalid
from tenants.storage import database
from tenants.storage.searching import searching

View: TypeAlias = Literal["waiting", "mine", "taken", "assistant", "snoozed", "resolved", "all"]
VIEWS: tuple[View, ...] = get_args(View)
OWN: frozenset[View] = frozenset({"mine", "taken"})
"""Views that depend on the operator."""
HIGH_STAKES = frozenset({"high_risk", "high_stakes"})
"""Reasons of a handoff that come before all others."""

PAGE = 40
SNIPPET = 200
_LOOKED_BACK = 2_000
_WORDS = 5
_SAID = ("text", "file")


@dataclass(frozen=True, slots=True)
class Snippet:
    """The beginning of the last message of a person; of the assistant's where no person has written."""

    author: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A chat in the list. `urgent`: it waits, and its stakes are high."""

    chat: Chat
    last: Snippet | None
    urgent: bool


@dataclass(frozen=True, slots=True)
class InboxPage:
    """Rows in order, and where the next ones begin; None at the end."""

    rows: tuple[InboxRow, ...]
    following: str | None


@dataclass(frozen=True, slots=True)
class CustomerWords:
    """A message of a customer, and the chat that it is in."""

    chat_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """The newest messages of a chat, or those before a number; `earlier`: whether there are more before them."""

    messages: tuple[Message, ...]
    earlier: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of a view; an empty field does not restrict.

    :param words: all must occur in the chat's messages, its customer or its ticket, case-insensitive.
    :param site: key of the site where the chat began.
    :param reason: the reason for the handoff.
    """

    words: str = ""
    site: str = ""
    reason: str = ""

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filter as SQL conditions."""
        exact = ((ChatRow.site, self.site), (ChatRow.reason, self.reason))
        return [
            *(column == value for column, value in exact if value),
            *map(_holds, self.words.split()[:_WORDS]),
        ]


_EVERYTHING = Filter()


def page(view: View, chosen: Filter = _EVERYTHING, *, after: str = "", limit: int = PAGE) -> InboxPage:
    """Return one page of the inbox.

    :param after: `following` of the previous page. Raises `Invalid`, `cursor_invalid`, for any other value.
    :raises Invalid: `search_too_long`.
    :raises Busy: other searches of the tenant take too long.
    """
    order = _QUEUE if view == "waiting" else _RECENT
    query = select(ChatRow).where(*_of_view(view), *chosen.conditions())
    if after:
        query = query.where(_behind(order, _decoded(after, len(order))))
    columns = [column.asc() if ascending else column.desc() for column, ascending in order]
    with searching() if chosen.words else database.reading() as session:
        rows = session.scalars(query.order_by(*columns).limit(limit + 1)).all()
        shown = [chat_of(row) for row in rows[:limit]]
        last = _last_said([chat.chat_id for chat in shown])
        snippets = {chat_id: Snippet(author, kind, text) for chat_id, author, kind, text in session.execute(last)}
    following = _encoded(_key(view, shown[-1])) if len(rows) > limit else None
    listed = (
        InboxRow(chat, snippets.get(chat.chat_id), chat.reason in HIGH_STAKES and chat.state == "queued")
        for chat in shown
    )
    return InboxPage(tuple(listed), following)


def counts() -> Mapping[View, int]:
    """Count the chats of each view."""
    with database.reading() as session:
        numbers = session.execute(_counting()).one()
    return dict(zip(VIEWS, map(int, numbers), strict=True))


@cache
def _counting() -> Select[*tuple[int, ...]]:
    """Return the query of `counts`, which takes longer to build than to run."""
    columns = [func.coalesce(func.sum(case((and_(*_of_view(view)), 1), else_=0)), 0) for view in VIEWS if view != "all"]
    return select(*columns, func.count())


def count(view: View) -> int:
    """Count the chats of a view."""
    with database.reading() as session:
        return session.count(ChatRow, *_of_view(view))


def stretch(chat_id: str, *, before: int | None = None, limit: int = 200) -> Stretch:
    """Return messages of a chat in order, notes included."""
    query = messages_of(chat_id)
    if before is not None:
        query = query.where(ChatMessageRow.seq < before)
    with database.reading() as session:
        newest = session.scalars(query.order_by(ChatMessageRow.seq.desc()).limit(limit + 1)).all()
    return Stretch(tuple(message_of(row) for row in reversed(newest[:limit])), len(newest) > limit)


def reasons() -> tuple[str, ...]:
    """Return the reasons for handoffs in the tenant's chats, in alphabetical order."""
    query = select(ChatRow.reason).where(ChatRow.reason != "").distinct()
    with database.reading() as session:
        return tuple(sorted(session.scalars(query)))


def asked_before(stems: Sequence[str], *, limit: int) -> tuple[CustomerWords, ...]:
    """Return customers' messages of ended chats that contain any of these stems; last ended first.

    Empty if the search takes too long.
    """
    if not stems:
        return ()
    holds = or_(*(ChatMessageRow.text.contains(one, autoescape=True) for stem in stems for one in _spelled(stem)))
    query = (
        select(ChatMessageRow.chat_id, ChatMessageRow.text)
        .join(ChatRow, ChatRow.chat_id == ChatMessageRow.chat_id)
        .where(ChatRow.state == "resolved", ChatRow.chat_id.in_(_ended()))
        .where(ChatMessageRow.author == "customer", ChatMessageRow.kind == "text", holds)
        .order_by(ChatRow.resolved_at.desc())
        .limit(limit)
    )
    try:
        with searching() as session:
            return tuple(CustomerWords(chat_id, text) for chat_id, text in session.execute(query))
    except (Invalid, Busy):
        return ()


def last_replies(chat_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the last public reply of a person in each of these chats, if there is one."""
    mine = ChatMessageRow.chat_id.in_(chat_ids)
    spoken = (mine, ChatMessageRow.author == "operator", ChatMessageRow.kind == "text")
    query = select(ChatMessageRow.chat_id, ChatMessageRow.text).where(*spoken).order_by(ChatMessageRow.seq)
    with database.reading() as session:
        return {row.chat_id: row.text for row in session.execute(query)}


_Order: TypeAlias = Sequence[tuple[SQLColumnExpression[int | float | str | datetime], bool]]
_QUEUE: _Order = (
    (case((ChatRow.reason.in_(HIGH_STAKES), 0), else_=1), True),
    (func.coalesce(ChatRow.waiting_since, ChatRow.updated_at), True),
    (func.coalesce(ChatRow.confidence, 1.0), True),
    (ChatRow.chat_id, True),
)
_RECENT: _Order = ((ChatRow.updated_at, False), (ChatRow.chat_id, False))


_ME = bindparam("me", callable_=lambda: context.current().subject, type_=String())


@cache
def _of_view(view: View) -> Sequence[ColumnElement[bool]]:
    # A chat that waited too long is back with the assistant, but its ticket still waits for a person.
    waits = or_(ChatRow.state == "queued", and_(ChatRow.state == "bot", ChatRow.ticket_id.is_not(None)))
    conditions: Mapping[View, Sequence[ColumnElement[bool]]] = {
        "waiting": [waits],
        "mine": [ChatRow.state.in_(("human", "snoozed")), ChatRow.assignee == _ME],
        "taken": [ChatRow.state == "human", ChatRow.assignee != _ME],
        "assistant": [ChatRow.state == "bot", ChatRow.ticket_id.is_(None)],
        "snoozed": [ChatRow.state == "snoozed"],
        "resolved": [ChatRow.state == "resolved"],
        "all": [],
    }
    return conditions[view]


def _holds(word: str) -> ColumnElement[bool]:
    """Whether a chat has this word. SQLite folds only Latin letters, so the usual ways to write others are tried."""
    spelled = _spelled(word)
    said = (
        select(ChatMessageRow.seq)
        .where(
            ChatMessageRow.chat_id == ChatRow.chat_id,
            or_(*(ChatMessageRow.text.contains(one, autoescape=True) for one in spelled)),
        )
        .exists()
    )
    return or_(said, ChatRow.subject.contains(word, autoescape=True), ChatRow.ticket_id == word.upper())


def _spelled(word: str) -> frozenset[str]:
    return frozenset((word, word.lower(), word.upper(), word.capitalize()))


def _ended() -> Select[str]:
    """Select the chats that ended last; the search for similar chats is limited to them."""
    mine = select(ChatRow.chat_id).where(ChatRow.state == "resolved")
    return mine.order_by(ChatRow.updated_at.desc()).limit(_LOOKED_BACK)


def _last_said(chat_ids: Sequence[str]) -> Select[str, str, str, str]:
    mine = ChatMessageRow.chat_id.in_(chat_ids)
    by_person = case((ChatMessageRow.author != "bot", ChatMessageRow.seq))
    last = (
        select(ChatMessageRow.chat_id, func.coalesce(func.max(by_person), func.max(ChatMessageRow.seq)))
        .where(mine, ChatMessageRow.kind.in_(_SAID))
        .group_by(ChatMessageRow.chat_id)
    )
    beginning = func.substr(ChatMessageRow.text, 1, SNIPPET)
    return select(ChatMessageRow.chat_id, ChatMessageRow.author, ChatMessageRow.kind, beginning).where(
        mine, tuple_(ChatMessageRow.chat_id, ChatMessageRow.seq).in_(last)
    )


_Value: TypeAlias = int | float | str | datetime


def _key(view: View, chat: Chat) -> tuple[_Value, ...]:
    if view != "waiting":
        return (chat.updated_at, chat.chat_id)
    confidence = 1.0 if chat.confidence is None else chat.confidence
    return (int(chat.reason not in HIGH_STAKES), chat.waiting_since or chat.updated_at, confidence, chat.chat_id)


def _behind(order: _Order, values: Sequence[_Value]) -> ColumnElement[bool]:
    """Select rows after these values in lexicographic order."""
    ways = []
    for place, (column, ascending) in enumerate(order):
        equal = [one == value for (one, _), value in zip(order[:place], values[:place], strict=True)]
        ways.append(and_(*equal, column > values[place] if ascending else column < values[place]))
    return or_(*ways)


def _encoded(values: Sequence[_Value]) -> str:
    plain = [["t", one.isoformat()] if isinstance(one, datetime) else ["v", one] for one in values]
    return urlsafe_b64encode(json.dumps(plain).encode()).decode()


def _decoded(cursor: str, length: int) -> tuple[_Value, ...]:
    with Invalid("cursor_invalid").instead_of(ValueError, TypeError, OverflowError):
        plain = json.loads(urlsafe_b64decode(cursor))
        values = tuple(datetime.fromisoformat(one).astimezone(UTC) if kind == "t" else one for kind, one in plain)
    kinds = ((datetime, str), (int, datetime, int | float, str))
    if not any(_fits(values, kind) for kind in kinds if len(kind) == length):
        raise Invalid("cursor_invalid")
    return values


def _fits(values: Sequence[object], kinds: Sequence[type | UnionType]) -> bool:
    alike = len(values) == len(kinds) and all(isinstance(one, kind) for one, kind in zip(values, kinds, strict=True))
    return alike and not any(isinstance(one, str) and "\0" in one for one in values)


def known(chat_ids: Collection[str]) -> frozenset[str]:
    """Return the ids that are chats of the tenant."""
    query = select(ChatRow.chat_id)
    with database.reading() as session:
        return frozenset(session.scalars(query.where(ChatRow.chat_id.in_(chat_ids))))
