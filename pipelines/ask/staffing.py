"""Texts about when a person will answer. They name days, so that they stay true when read later."""

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict

from components.language.texts import text
from tenants.accounts.hours import WEEKDAYS, Hours


class Staffing(BaseModel):
    """Whether people are there now, what customers read about it, and when that changes (null: not soon)."""

    model_config = ConfigDict(frozen=True)

    open: bool
    text: str
    changes_at: datetime | None


def staffing(hours: Hours | None, locale: str, now: datetime | None = None) -> Staffing | None:
    if hours is None:
        return None
    opening = hours.at(now or datetime.now(UTC))
    at = opening.changes_at
    if opening.open:
        words = text("hours.open_until", locale, time=_clock(at)) if at else text("hours.open", locale)
    else:
        away = hours.away.get("en" if locale == "en" else "ru", "")
        following = text("hours.opens", locale, day=_day(at, locale), time=_clock(at)) if at else ""
        words = f"{away} {following}".strip() or text("hours.closed", locale)
    return Staffing(open=opening.open, text=words, changes_at=at.astimezone(UTC) if at else None)


def sentence(hours: Hours | None, locale: str) -> str:
    """Return the same as a sentence to append to another one; empty if the hours are not set."""
    now = staffing(hours, locale)
    return f" {now.text}" if now is not None else ""


def _day(moment: datetime, locale: str) -> str:
    weekday = text(f"hours.weekday.{WEEKDAYS[moment.weekday()]}", locale)
    month = text(f"hours.month.{moment.month}", locale)
    return text("hours.day", locale, weekday=weekday, number=moment.day, month=month)


def _clock(moment: datetime) -> str:
    offset = moment.utcoffset() or timedelta()
    minutes = round(offset.total_seconds() / 60)
    sign, apart = ("+", minutes) if minutes >= 0 else ("-", -minutes)
    zone = "UTC" if not minutes else f"UTC{sign}{apart // 60}" + (f":{apart % 60:02}" if apart % 60 else "")
    return f"{moment:%H:%M} ({zone})"
