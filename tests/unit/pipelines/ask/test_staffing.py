"""The notice about when a person will answer is true now and still true when it is read later."""

from datetime import datetime

import pytest

from pipelines.ask.staffing import sentence, staffing
from tenants.accounts.hours import WEEKDAYS, Hours

HOURS = Hours.model_validate(
    {
        "zone": "Europe/Moscow",
        "week": {day: ["09:00-18:00"] for day in WEEKDAYS[:5]},
        "away": {"ru": "Мы отдыхаем."},
    }
)
FRIDAY, SATURDAY = "2026-11-20T12:00:00+03:00", "2026-11-21T12:00:00+03:00"


@pytest.mark.parametrize(
    ("at", "locale", "words"),
    [
        (FRIDAY, "ru", "Сотрудники на связи до 18:00 (UTC+3)."),
        (FRIDAY, "en", "Our team is online until 18:00 (UTC+3)."),
        (SATURDAY, "ru", "Мы отдыхаем. Сотрудники ответят в понедельник, 23 ноября, с 09:00 (UTC+3)."),
        (SATURDAY, "en", "Our team will answer on Monday 23 November from 09:00 (UTC+3)."),
    ],
)
def test_the_hour_and_the_day_are_named(at: str, locale: str, words: str) -> None:
    now = staffing(HOURS, locale, datetime.fromisoformat(at))
    assert now is not None
    assert (now.text, now.open) == (words, at == FRIDAY)


@pytest.mark.parametrize(
    ("zone", "shown"), [("UTC", "UTC"), ("Asia/Kathmandu", "UTC+5:45"), ("America/Bogota", "UTC-5")]
)
def test_the_zone_is_named_by_its_offset(zone: str, shown: str) -> None:
    hours = Hours.model_validate({"zone": zone, "week": {"mon": ["09:00-18:00"]}})
    now = staffing(hours, "en", datetime.fromisoformat(SATURDAY))
    assert now is not None
    assert now.text.endswith(f"09:00 ({shown}).")


def test_where_nobody_has_said_nothing_is_promised() -> None:
    assert staffing(None, "ru") is None
    assert sentence(None, "ru") == ""
    never = Hours.model_validate({"zone": "UTC", "week": {}})
    assert sentence(never, "ru") == " Сейчас сотрудников на связи нет."
    always = Hours.model_validate({"zone": "UTC", "week": {day: ["00:00-24:00"] for day in WEEKDAYS}})
    assert sentence(always, "en") == " Our team is online."
