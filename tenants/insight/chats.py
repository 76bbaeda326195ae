"""Statistics of chats: outcomes by day and by origin, waiting times, ratings.

A chat counts for the day of its customer's first message. Each chat has exactly one result.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, Select, and_, case, extract, func, literal, or_, select, union_all

from tenants.audit.search import ANSWERS
from tenants.chats.progress import ENDS_AFTER, RETURNS_WITHIN
from tenants.chats.tables import ChatRow
from tenants.insight.period import Period, seconds_between
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.searching import counting
from tenants.storage.tenant_session import TenantSession

Result: TypeAlias = Literal["autonomous", "assisted", "reopened", "unresolved", "open"]
RESULTS: tuple[Result, ...] = get_args(Result)
Part: TypeAlias = Literal["site", "channel", "locale", "outcome", "outcome_reason", "handoff_reason"]
PARTS: tuple[Part, ...] = get_args(Part)
Wait: TypeAlias = Literal["answer", "reply", "resolution"]
WAITS: tuple[Wait, ...] = get_args(Wait)

_CONTENT, _DISCONTENT = 4, 2
"""From which rating on, of 5, a customer is content, and up to which one is not."""


_QUARTER = 900
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Chats by result. `provisional` are those of them that may still be reopened within their seven days."""

    autonomous: int = 0
    assisted: int = 0
    reopened: int = 0
    unresolved: int = 0
    open: int = 0
    provisional: int = 0

    @property
    def total(self) -> int:
        """Return the number of all chats."""
        return self.ended + self.open

    @property
    def ended(self) -> int:
        """Return the number of ended chats, the base of all rates."""
        return self.autonomous + self.assisted + self.reopened + self.unresolved

    def of(self, result: Result) -> int:
        """Return the number of chats with this result."""
        count: int = getattr(self, result)
        return count

    def rate(self, result: Result) -> float | None:
        """Return the share among ended chats; None if no chat has ended."""
        return self.of(result) / self.ended if self.ended else None

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Tally)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """Seconds: half waited no longer than `median`, nine of ten no longer than `p90`. None: there was none."""

    count: int = 0
    median: float | None = None
    p90: float | None = None


@dataclass(frozen=True, slots=True)
class ChatFigures:
    """Everything about the chats of a period."""

    tally: Tally
    by_day: Mapping[str, Tally]
    by_part: Mapping[Part, Mapping[str, Tally]]
    ratings: Mapping[int, int]
    waits: Mapping[Wait, Waiting] = field(default_factory=dict)

    @property
    def rated(self) -> int:
        """Return the number of rated chats."""
        return sum(self.ratings.values())

    @property
    def csat(self) -> float | None:
        """Return the share of ratings that are 4 or 5."""
        content = sum(count for rating, count in self.ratings.items() if rating >= _CONTENT)
        return content / self.rated if self.rated else None


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A chat in an export, without its texts and without data about the customer."""

    chat_id: str
    asked_at: datetime
    site: str
    channel: str
    locale: str
    state: str
    result: str
    provisional: bool
    outcome: str
    outcome_reason: str
    handoff_reason: str
    csat: int | None
    seconds_to_answer: float | None
    seconds_to_reply: float | None
    seconds_to_resolution: float | None


def figures(period: Period, now: datetime) -> ChatFigures:
    """Compute the statistics of the tenant in context."""
    with counting() as session:
        parts: dict[Part, dict[str, Tally]] = {part: {} for part in PARTS}
        total = Tally()
        for values, tally in _by_parts(session, period, now):
            total += tally
            for part, value in values.items():
                parts[part][value] = parts[part].get(value, Tally()) + tally
        return ChatFigures(
            tally=total,
            by_day=_by_day(session, period, now),
            by_part=parts,
            ratings=_ratings(session, period),
            waits=_waits(session, period),
        )


def lines(period: Period, now: datetime, *, at_once: int = 500) -> Iterator[ChatLine]:
    """Yield every chat of a period in order, read in batches."""
    place: tuple[datetime, str] | None = None
    waits = [*_WAITED.values()]
    while True:
        query = _of(period).with_only_columns(ChatRow, _result(now), _provisional(now), *(span for span, _ in waits))
        if place is not None:
            at, chat_id = place
            query = query.where(or_(ChatRow.asked_at > at, and_(ChatRow.asked_at == at, ChatRow.chat_id > chat_id)))
        with database.reading() as session:
            page = session.execute(query.order_by(ChatRow.asked_at, ChatRow.chat_id).limit(at_once)).all()
            found = [(row, str(result), bool(provisional), spans) for row, result, provisional, *spans in page]
        for row, result, provisional, spans in found:
            if row.asked_at is not None:
                place = (row.asked_at, row.chat_id)
                yield _line(row, row.asked_at, result, spans, provisional=provisional)
        if len(found) < at_once:
            return


def _line(
    row: ChatRow, asked_at: datetime, result: str, spans: Sequence[float | None], *, provisional: bool
) -> ChatLine:
    answer, reply, resolution = (None if span is None else round(span, 1) for span in spans)
    return record_of(
        ChatLine,
        row,
        asked_at=asked_at,
        result=result,
        provisional=provisional,
        handoff_reason=row.reason,
        seconds_to_answer=answer,
        seconds_to_reply=reply,
        seconds_to_resolution=resolution,
    )


def _of(period: Period) -> Select[str]:
    return select(ChatRow.chat_id).where(period.holds(ChatRow.asked_at))


def _ended(now: datetime) -> ColumnElement[bool]:
    """Express `tenants.chats.progress.ended_at` in SQL."""
    idle = and_(ChatRow.state == "bot", ChatRow.ticket_id.is_(None), ChatRow.updated_at <= now - ENDS_AFTER)
    return or_(ChatRow.state == "resolved", idle)


def _result(now: datetime) -> ColumnElement[str]:
    answered = or_(
        ChatRow.csat >= _CONTENT,
        and_(ChatRow.outcome.in_(ANSWERS), or_(ChatRow.csat.is_(None), ChatRow.csat > _DISCONTENT)),
    )
    return case(
        (ChatRow.returned_at.is_not(None), "reopened"),
        (~_ended(now), "open"),
        (ChatRow.replied_at.is_not(None), "assisted"),
        (and_(ChatRow.requested_at.is_(None), answered), "autonomous"),
        else_="unresolved",
    )


def _provisional(now: datetime) -> ColumnElement[int]:
    ended_at = case((ChatRow.state == "resolved", ChatRow.resolved_at), else_=ChatRow.updated_at)
    young = and_(ChatRow.returned_at.is_(None), _ended(now), ended_at > now - RETURNS_WITHIN)
    return case((young, 1), else_=0)


def _by_parts(session: TenantSession, period: Period, now: datetime) -> Iterator[tuple[Mapping[Part, str], Tally]]:
    columns = {
        "site": ChatRow.site,
        "channel": ChatRow.channel,
        "locale": ChatRow.locale,
        "outcome": ChatRow.outcome,
        "outcome_reason": ChatRow.outcome_reason,
        "handoff_reason": ChatRow.reason,
    }
    result = _result(now).label("result")
    query = _of(period).with_only_columns(*columns.values(), result, func.count(), func.sum(_provisional(now)))
    for *values, its_result, count, provisional in session.execute(query.group_by(*columns.values(), "result")):
        tally = Tally(**{str(its_result): int(count)}, provisional=int(provisional))
        yield dict(zip(PARTS, map(str, values), strict=True)), tally


def _by_day(session: TenantSession, period: Period, now: datetime) -> Mapping[str, Tally]:
    """Count by day, including days without chats."""
    days = {day.isoformat(): Tally() for day in period.days()}
    seconds = extract("epoch", ChatRow.asked_at)
    # Offsets from UTC are multiples of a quarter of an hour, so each quarter belongs to one day of the zone.
    quarter, result = (seconds - seconds % _QUARTER).label("quarter"), _result(now).label("result")
    query = _of(period).with_only_columns(quarter, result, func.count(), func.sum(_provisional(now)))
    # By name: to PostgreSQL, two expressions with different parameters are different expressions.
    for began, its_result, count, provisional in session.execute(query.group_by("quarter", "result")):
        days[period.day_of(datetime.fromtimestamp(float(began), UTC))] += Tally(
            **{str(its_result): int(count)}, provisional=int(provisional)
        )
    return days


def _ratings(session: TenantSession, period: Period) -> Mapping[int, int]:
    query = _of(period).with_only_columns(ChatRow.csat, func.count()).where(ChatRow.csat.is_not(None))
    counted = {rating: count for rating, count in session.execute(query.group_by(ChatRow.csat)) if rating is not None}
    return {rating: counted.get(rating, 0) for rating in range(1, 6)}


_WAITED: Mapping[Wait, tuple[ColumnElement[float], ColumnElement[bool]]] = {
    "answer": (seconds_between(ChatRow.asked_at, ChatRow.answered_at), ChatRow.answered_at.is_not(None)),
    "reply": (
        # An operator may have written before the customer asked for a person.
        case((ChatRow.replied_at >= ChatRow.requested_at, seconds_between(ChatRow.requested_at, ChatRow.replied_at))),
        ChatRow.replied_at >= ChatRow.requested_at,
    ),
    "resolution": (seconds_between(ChatRow.asked_at, ChatRow.resolved_at), ChatRow.resolved_at.is_not(None)),
}


def _waits(session: TenantSession, period: Period) -> Mapping[Wait, Waiting]:
    """Compute nearest-rank percentiles, because SQLite has no others."""
    counts = [func.coalesce(func.sum(case((waited, 1), else_=0)), 0) for _, waited in _WAITED.values()]
    counted = [int(count) for count in session.execute(_of(period).with_only_columns(*counts)).one()]
    ranks = {wait: ((count + 1) // 2, (9 * count + 9) // 10) for wait, count in zip(WAITS, counted, strict=True)}
    queries = []
    for wait, (seconds, waited) in _WAITED.items():
        place = func.row_number().over(order_by=seconds)
        ranked = _of(period).where(waited).with_only_columns(seconds.label("seconds"), place.label("place")).subquery()
        wanted = ranked.c.place.in_(set(ranks[wait]))
        queries.append(select(literal(wait).label("wait"), ranked.c.place, ranked.c.seconds).where(wanted))
    found = {(str(wait), int(place)): float(seconds) for wait, place, seconds in session.execute(union_all(*queries))}
    return {
        wait: Waiting(count, *(found.get((wait, rank)) for rank in ranks[wait]))
        for wait, count in zip(WAITS, counted, strict=True)
    }
