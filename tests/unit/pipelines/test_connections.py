"""Effects of connections on the log."""

import logging

from pipelines.connections import SeldomFilter


def _record(second: float, text: str = "Invalid HTTP request received.") -> logging.LogRecord:
    record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, text, None, None)
    record.created = second
    return record


def test_repeated_invalid_requests_are_logged_once_in_ten_seconds() -> None:
    seldom = SeldomFilter()
    records = [_record(100 + number / 100) for number in range(1_500)]
    written = [record for record in records if seldom.filter(record)]
    assert [record.created for record in written] == [100, 110]
    assert written[1].getMessage() == "Invalid HTTP request received. 999 more since the last line."


def test_other_lines_are_always_written() -> None:
    seldom = SeldomFilter()
    assert all(seldom.filter(_record(100, "Started")) for _ in range(3))
