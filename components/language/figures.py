"""Numbers as they are written in Russian and in English."""

_SPACE = "\u00a0"


def number(value: float, digits: int = 0, *, locale: str) -> str:
    """`1 234,5` or `1,234.5`. Russian leaves four digits together."""
    written = f"{value:,.{digits}f}"
    if locale != "ru":
        return written
    whole, _, fraction = written.partition(".")
    spaced = whole.replace(",", _SPACE if abs(value) >= 10_000 else "")
    return f"{spaced},{fraction}" if fraction else spaced


def percent(share: float | None, digits: int = 0, *, locale: str) -> str:
    """`34 %` or `34%`; a dash where there is nothing to take a share of."""
    if share is None:
        return "–"
    written = number(100 * share, digits, locale=locale)
    return f"{written}{_SPACE}%" if locale == "ru" else f"{written}%"
