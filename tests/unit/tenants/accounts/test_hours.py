"""Opening hours: by weekday, in their own zone, over midnight, over holidays, and over the change of clocks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tenants.accounts.hours import WEEKDAYS, Hours

MOSCOW = "Europe/Moscow"
WEEKLY = Hours.model_validate(
    {
        "zone": MOSCOW,
        "week": {day: ["09:00-13:00", "14:00-18:00"] for day in WEEKDAYS[:5]},
        "holidays": ["2026-11-23"],
    }
)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_whether_people_are_there_and_when_that_changes() -> None:
    for at, is_open, changes_at in (
        ("2026-11-20T08:59:59+03:00", False, "2026-11-20T09:00:00+03:00"),
        ("2026-11-20T09:00:00+03:00", True, "2026-11-20T13:00:00+03:00"),
        ("2026-11-20T13:00:00+03:00", False, "2026-11-20T14:00:00+03:00"),
        ("2026-11-20T17:59:59+03:00", True, "2026-11-20T18:00:00+03:00"),
        # A Friday evening before a holiday: Tuesday.
        ("2026-11-20T18:00:00+03:00", False, "2026-11-24T09:00:00+03:00"),
        ("2026-11-23T12:00:00+03:00", False, "2026-11-24T09:00:00+03:00"),
        # The same moment as the second, said by another clock.
        ("2026-11-20T06:00:00+00:00", True, "2026-11-20T13:00:00+03:00"),
        ("2026-11-20T20:00:00+14:00", True, "2026-11-20T13:00:00+03:00"),
    ):
        opening = WEEKLY.at(moment(at))
        assert opening.open is is_open
        assert opening.changes_at == moment(changes_at)
        assert opening.changes_at is not None
        assert str(opening.changes_at.tzinfo) == MOSCOW


def test_a_night_shift_is_one_stretch() -> None:
    night = Hours.model_validate({"zone": MOSCOW, "week": {"fri": ["22:00-24:00"], "sat": ["00:00-06:00"]}})
    assert night.at(moment("2026-11-20T23:00:00+03:00")).changes_at == moment("2026-11-21T06:00:00+03:00")
    assert night.at(moment("2026-11-21T00:00:00+03:00")).open


def test_always_and_never_do_not_change() -> None:
    always = Hours.model_validate({"zone": MOSCOW, "week": {day: ["00:00-24:00"] for day in WEEKDAYS}})
    assert (always.at(datetime.now(UTC)).open, always.at(datetime.now(UTC)).changes_at) == (True, None)
    never = Hours.model_validate({"zone": MOSCOW, "week": {}})
    assert (never.at(datetime.now(UTC)).open, never.at(datetime.now(UTC)).changes_at) == (False, None)


@pytest.mark.parametrize(
    ("at", "changes_at"),
    [
        # Berlin puts its clocks back on 25 October 2026 and forward on 28 March 2027: nine o'clock stays nine o'clock.
        ("2026-10-24T12:00:00+02:00", "2026-10-25T09:00:00+01:00"),
        ("2027-03-27T12:00:00+01:00", "2027-03-28T09:00:00+02:00"),
    ],
)
def test_clocks_may_change_overnight(at: str, changes_at: str) -> None:
    hours = Hours.model_validate({"zone": "Europe/Berlin", "week": {"sun": ["09:00-10:00"]}})
    assert hours.at(moment(at)).changes_at == moment(changes_at)


def test_an_hour_that_the_clocks_skip_is_none() -> None:
    hours = Hours.model_validate({"zone": "Europe/Berlin", "week": {"sun": ["02:00-02:30", "09:00-10:00"]}})
    opening = hours.at(moment("2027-03-28T01:30:00+01:00"))
    assert opening.changes_at is not None
    assert opening.changes_at >= moment("2027-03-28T01:00:00+00:00")


@given(
    at=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
    zone=st.sampled_from(["UTC", MOSCOW, "Asia/Kathmandu", "America/New_York", "Pacific/Apia"]),
    week=st.dictionaries(
        st.sampled_from(WEEKDAYS),
        st.lists(st.sampled_from(["00:00-06:30", "09:00-13:00", "12:00-18:00", "22:00-24:00"]), max_size=4),
    ),
)
def test_it_changes_when_it_says_and_not_before(at: datetime, zone: str, week: dict[str, list[str]]) -> None:
    hours = Hours.model_validate({"zone": zone, "week": week})
    opening = hours.at(at)
    if opening.changes_at is None:
        return
    assert opening.changes_at > at
    assert hours.at(opening.changes_at).open is not opening.open
    halfway = at + (opening.changes_at - at) / 2
    assert hours.at(halfway) == opening


@pytest.mark.parametrize(
    "given",
    [
        {"zone": "Moscow/Kremlin", "week": {}},
        {"zone": "../../etc/passwd", "week": {}},
        {"zone": MOSCOW, "week": {"monday": ["09:00-18:00"]}},
        {"zone": MOSCOW, "week": {"mon": ["18:00-09:00"]}},
        {"zone": MOSCOW, "week": {"mon": ["09:00-25:00"]}},
        {"zone": MOSCOW, "week": {"mon": ["9-18"]}},
        {"zone": MOSCOW, "week": {}, "away": {"de": "Zu."}},
        {"zone": MOSCOW},
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Hours.model_validate(given)
