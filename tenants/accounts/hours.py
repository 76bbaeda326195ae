"""Opening hours of operators: weekly hours in a time zone, holidays, and the notice that customers read meanwhile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, StringConstraints

from tenants.core.validation import FrozenModel, validated

Weekday: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)

_BACK_DAYS = 8
_AHEAD_DAYS = 400
"""Days to look ahead for the next opening; longer closures count as permanent."""


def _checked_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as unknown:
        raise ValueError("zone_unknown") from unknown
    return name


def _checked_span(span: str) -> str:
    opens, closes = span.split("-")
    if opens >= closes:
        raise ValueError("span_empty")
    return span


_Zone: TypeAlias = Annotated[str, StringConstraints(max_length=64), AfterValidator(_checked_zone)]
_Span: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$"),
    AfterValidator(_checked_span),
]
_Line: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class Opening:
    """Whether people are there at a moment, and when that changes next; None: never, as far as one can see."""

    open: bool
    changes_at: datetime | None


class Hours(FrozenModel):
    """Opening hours. A night shift is two spans: `22:00-24:00`, and `00:00-06:00` of the next day."""

    zone: _Zone = Field(description="IANA time zone, such as `Europe/Moscow`.")
    week: dict[Weekday, Annotated[tuple[_Span, ...], Field(max_length=6)]] = Field(
        description="By weekday (`mon` … `sun`) spans such as `09:00-18:00`; a day that is missing is closed."
    )
    holidays: Annotated[tuple[date, ...], Field(max_length=400)] = Field((), description="Days that are closed.")
    away: dict[Literal["ru", "en"], _Line] = Field(
        default_factory=dict,
        description="What customers read outside the opening hours, before the time of the next opening.",
    )

    def at(self, moment: datetime) -> Opening:
        """Whether people are there at a moment; `changes_at` is in the zone of the hours."""
        for opens, closes in self._spans_around(moment):
            if moment < opens:
                return Opening(open=False, changes_at=opens)
            if moment < closes:
                return Opening(open=True, changes_at=closes if closes < self._horizon(moment) else None)
        return Opening(open=False, changes_at=None)

    def _spans_around(self, moment: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the spans from some days before until the horizon, in order; adjacent spans are merged."""
        current: tuple[datetime, datetime] | None = None
        for span in self._spans(moment):
            if current is not None and span[0] <= current[1]:
                current = current[0], max(current[1], span[1])
                continue
            if current is not None:
                yield current
            current = span
        if current is not None:
            yield current

    def _spans(self, moment: datetime) -> Iterator[tuple[datetime, datetime]]:
        zone = ZoneInfo(self.zone)
        today = moment.astimezone(zone).date()
        for ahead in range(-_BACK_DAYS, _AHEAD_DAYS):
            day = today + timedelta(days=ahead)
            if day in self.holidays:
                continue
            for span in sorted(self.week.get(WEEKDAYS[day.weekday()], ())):
                opens, closes = (_moment(day, clock, zone) for clock in span.split("-"))
                if opens < closes:  # an hour that the change to summer time skips is empty
                    yield opens, closes

    @staticmethod
    def _horizon(moment: datetime) -> datetime:
        return moment + timedelta(days=_AHEAD_DAYS - 2)


def parsed(given: Mapping[str, object]) -> Hours:
    """Validate opening hours. Raises `Invalid`, `hours_invalid`, with the field."""
    return validated(Hours, given, "hours_invalid")


def _moment(day: date, clock: str, zone: ZoneInfo) -> datetime:
    if clock == "24:00":
        day, clock = day + timedelta(days=1), "00:00"
    # Via UTC, so that instants are compared, not clock readings on both sides of a time change.
    return datetime.combine(day, time.fromisoformat(clock), tzinfo=zone).astimezone(UTC).astimezone(zone)
