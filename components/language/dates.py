"""Days as people write them."""

from calendar import month_name
from datetime import date


def day(iso: str, locale: str) -> str:
    """An ISO 8601 day in the locale's form: `05.03.2024` in Russian, `5 March 2024` in English. Else as it is."""
    try:
        moment = date.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{moment:%d.%m.%Y}" if locale == "ru" else f"{moment.day} {month_name[moment.month]} {moment.year}"
