"""A period of days in the tenant's time zone, and the time between two moments in SQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Function, and_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from tenants.accounts import policy
from tenants.core.errors import Invalid

MOST_DAYS = 366
_FIRST_DAY, _LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)
_BOUNDS = {"most": MOST_DAYS}


@dataclass(frozen=True, slots=True)
class Period:
    """Days from the first to the last, both included."""

    first: date
    last: date
    zone: str

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Return the start of the first day, and of the day after the last one."""
        return self._midnight(self.first), self._midnight(self.last + timedelta(days=1))

    def days(self) -> Iterator[date]:
        """Yield every day, in order."""
        return (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))

    def holds(
        self, column: InstrumentedAttribute[datetime | None] | InstrumentedAttribute[datetime]
    ) -> ColumnElement[bool]:
        """Whether a moment is in it."""
        begins, ends = self.bounds
        return and_(column >= begins, column < ends)

    def day_of(self, moment: datetime) -> str:
        """Return the day of a moment, as ISO 8601."""
        return moment.astimezone(ZoneInfo(self.zone)).date().isoformat()

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), tzinfo=ZoneInfo(self.zone)).astimezone(UTC)


def chosen(first: date | None, last: date | None, days: int, now: datetime) -> Period:
    """Return the period between two days, or a number of days until today, in the zone of the opening hours.

    :raises Invalid: `period_invalid`, where it would begin after its end or hold more than a year.
    """
    zone = _zone()
    today = now.astimezone(ZoneInfo(zone)).date()
    with Invalid("period_invalid", **_BOUNDS).instead_of(OverflowError):
        last = last or (first + timedelta(days=days - 1) if first else today)
        first = first or last - timedelta(days=days - 1)
    in_range = _FIRST_DAY <= first <= last <= _LAST_DAY
    if not in_range or (last - first).days >= MOST_DAYS:
        raise Invalid("period_invalid", **_BOUNDS)
    return Period(first, last, zone)


def parsed_day(written: str) -> date | None:
    """Parse a day in ISO 8601; None if nothing is written. Raises `Invalid`, `period_invalid`."""
    with Invalid("period_invalid", **_BOUNDS).instead_of(ValueError):
        return date.fromisoformat(written) if written else None


def of_day(day: date) -> Period:
    """Return a single day. Raises `Invalid`, `period_invalid`, outside the supported range."""
    if not _FIRST_DAY <= day <= _LAST_DAY:
        raise Invalid("period_invalid", **_BOUNDS)
    return Period(day, day, _zone())


def _zone() -> str:
    hours = policy.current().hours
    return hours.zone if hours is not None else "UTC"


class seconds_between(GenericFunction[float]):  # noqa: N801
    """Seconds between two moments."""

    inherit_cache = True


@compiles(seconds_between, "sqlite")
def _sqlite_seconds(element: Function[float], compiler: SQLCompiler, **options: object) -> str:
    begins, ends = (compiler.process(one, **options) for one in element.clauses)
    return f"(julianday({ends}) - julianday({begins})) * 86400.0"


@compiles(seconds_between, "postgresql")
def _postgresql_seconds(element: Function[float], compiler: SQLCompiler, **options: object) -> str:
    begins, ends = (compiler.process(one, **options) for one in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM {ends} - {begins}) AS DOUBLE PRECISION)"
