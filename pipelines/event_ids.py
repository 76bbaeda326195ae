"""Numbers of events, as clients that come back send them in `Last-Event-ID`."""

_MOST_DIGITS = 18


def is_event_number(text: str) -> bool:
    """Whether a text can be one. Python refuses to read numbers of thousands of digits, and so does any database."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS
