"""Numbers of events, as clients that come back send them in `Last-Event-ID`."""

_MOST_DIGITS = 18


def is_event_number(text: str) -> bool:
    """Return whether a text can be an event number. Python and databases reject numbers of thousands of digits."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS
