"""Text for people, by key and locale, and how numbers and days are written.

The texts themselves live in `locales/<locale>/<area>.yaml`.
An area may have parts: `desk/knowledge.yaml` holds the keys that begin with `desk.knowledge.`
"""

import os
from calendar import month_name
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path

from components.language.yaml_files import read_yaml

LOCALES = ("ru", "en")
_FOLDER = Path(__file__).parent / "locales"
_SPACE = "\u00a0"


def text(key: str, locale: str, **params: str | int | float) -> str:
    """Return the text at `area.path.to.key`, its `{placeholders}` filled.

    :param locale: `ru` or `en`; anything else, or a key missing there, falls back to Russian, then English.
    :raises KeyError: no locale has the key, or a placeholder has no value.
    """
    for candidate in dict.fromkeys((locale, *LOCALES)):
        value = _texts(candidate).get(key)
        if value is not None:
            return value.format(**params) if params else value
    raise KeyError(key)


def text_or(default: str, key: str, locale: str, **params: str | int | float) -> str:
    """Return the text at a key, or `default` if it cannot be found or filled."""
    try:
        return text(key, locale, **params)
    except KeyError:
        return default


def texts(section: str, locale: str) -> Callable[..., str]:
    """Return a function that finds the texts of a section by the rest of their keys."""

    def find(key: str, **params: str | int | float) -> str:
        return text(f"{section}.{key}", locale, **params)

    return find


def keys(prefix: str) -> tuple[str, ...]:
    """Return every key that starts with `prefix`, in file order, over all locales."""
    return tuple(dict.fromkeys(key for locale in LOCALES for key in _texts(locale) if key.startswith(prefix)))


def day(iso: str, locale: str) -> str:
    """Return an ISO 8601 day in the locale's form: `05.03.2024` in Russian, `5 March 2024` in English; other text
    unchanged.
    """
    try:
        moment = date.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{moment:%d.%m.%Y}" if locale == "ru" else f"{moment.day} {month_name[moment.month]} {moment.year}"


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


def terminal_locale() -> str:
    """Return the locale that the environment names; English if it names none or an unsupported language."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    language = locale[:2].lower()
    return language if language in LOCALES else "en"


@lru_cache(maxsize=8)
def _texts(locale: str) -> Mapping[str, str]:
    flat: dict[str, str] = {}
    if locale in LOCALES:
        folder = _FOLDER / locale
        for path in sorted(folder.rglob("*.yaml")):
            area = ".".join(path.relative_to(folder).with_suffix("").parts)
            _flatten(area, read_yaml(path) or {}, flat)
    return flat


def _flatten(prefix: str, node: object, flat: dict[str, str]) -> None:
    if isinstance(node, dict):
        for name, child in node.items():
            _flatten(f"{prefix}.{name}", child, flat)
    else:
        flat[prefix] = str(node)
