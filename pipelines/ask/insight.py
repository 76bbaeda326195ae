"""Figures of a tenant's chats and turns: one use case behind the desk's page, `GET /insight` and `opora insight`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias, get_args

from pydantic_core import to_jsonable_python

from pipelines.spreadsheet import csv_lines
from tenants.core.errors import Invalid
from tenants.insight import chats, period, turns
from tenants.insight.chats import RESULTS, ChatFigures, ChatLine, Tally
from tenants.insight.period import Period
from tenants.insight.turns import TurnFigures

Format: TypeAlias = Literal["jsonl", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA_TYPES: Mapping[Format, str] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
DAYS = 28


@dataclass(frozen=True, slots=True)
class Insight:
    period: Period
    now: datetime
    chats: ChatFigures
    turns: TurnFigures


def insight(first: date | None = None, last: date | None = None, days: int = DAYS) -> Insight:
    """Return the figures between two days, or of the last `days` days. Raises `Invalid` (`period_invalid`)."""
    now = datetime.now(UTC)
    span = period.chosen(first, last, days, now)
    return Insight(span, now, chats.figures(span, now), turns.figures(span))


def as_json(shown: Insight) -> dict[str, object]:
    """Return the figures as `insight.v1`. A rate is a share of the ended chats, null if there are none."""
    figures = shown.chats
    by_part = {
        f"by_{part}": {key: _tally(tally) for key, tally in sorted(tallies.items())}
        for part, tallies in figures.by_part.items()
    }
    return {
        "schema": "insight.v1",
        "period": {
            "since": shown.period.first,
            "until": shown.period.last,
            "zone": shown.period.zone,
            "as_of": shown.now,
        },
        "chats": {
            **_tally(figures.tally),
            "rates": {result: figures.tally.rate(result) for result in RESULTS if result != "open"},
            "by_day": {day: _tally(tally) for day, tally in figures.by_day.items()},
            **by_part,
        },
        "csat": {"rated": figures.rated, "content": figures.csat, "ratings": dict(figures.ratings)},
        "seconds": {wait: asdict(waiting) for wait, waiting in figures.waits.items()},
        "turns": asdict(shown.turns),
    }


def exported(kind: Format, first: date | None = None, last: date | None = None, days: int = DAYS) -> Iterator[str]:
    """Yield the chats of a period line by line, without customers. Raises like `insight`, before the first line."""
    now = datetime.now(UTC)
    span = period.chosen(first, last, days, now)
    return in_lines(kind, [one.name for one in fields(ChatLine)], map(to_jsonable_python, chats.lines(span, now)))


def checked(name: str) -> Format:
    for one in FORMATS:
        if one == name:
            return one
    raise Invalid("format_unknown", name=name, names=", ".join(FORMATS))


def in_lines(kind: Format, names: Iterable[str], rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    if kind == "csv":
        names = list(names)
        return csv_lines(names, ([row[name] for name in names] for row in rows))
    return (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _tally(tally: Tally) -> dict[str, int]:
    return {"total": tally.total, **asdict(tally)}
