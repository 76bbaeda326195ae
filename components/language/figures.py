"""Russian and English number formats."""

_SPACE = "\u00a0"


def number(value: float, digits: int | None = 0, *, locale: str) -> str:
    """Return `12 345,6` or `12,345.6`. Russian leaves four digits together.

    :param digits: after the decimal mark; as many as the value has when None.
    """
    whole_value = int(value) if float(value).is_integer() else value
    written = f"{whole_value:,}" if digits is None else f"{value:,.{digits}f}"
    if locale != "ru":
        return written
    whole, _, fraction = written.partition(".")
    spaced = whole.replace(",", _SPACE if abs(value) >= 10_000 else "")
    return f"{spaced},{fraction}" if fraction else spaced


def percent(share: float | None, digits: int = 0, *, locale: str) -> str:
    """Return `34 %` or `34%`; a dash where there is nothing to take a share of."""
    if share is None:
        return "–"
    written = number(100 * share, digits, locale=locale)
    return f"{written}{_SPACE}%" if locale == "ru" else f"{written}%"
