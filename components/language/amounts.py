"""The figures in a sentence, Russian or English: amounts with units, days, times of day, telephone numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from components.language.identifiers import numbers
from components.language.normalise import fold
from components.language.words import analyse

Span = tuple[float, float]

_MONTHS = (
    ("янв", "jan"),
    ("фев", "feb"),
    ("мар", "mar"),
    ("апр", "apr"),
    ("ма", "may"),
    ("июн", "jun"),
    ("июл", "jul"),
    ("авг", "aug"),
    ("сен", "sep"),
    ("окт", "oct"),
    ("ноя", "nov"),
    ("дек", "dec"),
)
_MONTH = (
    r"(январ|феврал|март|апрел|ма[яйе]|июн|июл|август|сентябр|октябр|ноябр|декабр|"
    r"january|february|march|april|may|june|july|august|september|october|november|december)[а-я]*"
)
_DAYS = (
    re.compile(rf"\b(?P<day>\d{{1,2}})\s+(?P<month>{_MONTH})(?:,?\s+(?P<year>\d{{4}}))?"),
    re.compile(rf"\b(?P<month>{_MONTH})\s+(?P<day>\d{{1,2}})\b(?!\d)(?:,?\s+(?P<year>\d{{4}}))?"),
    re.compile(r"\b(?P<day>\d{1,2})\.(?P<month>\d{2})\.(?P<year>\d{4})\b"),
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"),
)
_MOMENT = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_TELEPHONE = re.compile(r"\+?\d(?:[\s()-]{0,2}\d){9,12}(?!\d)")
_AMOUNT = re.compile(
    r"(?P<currency>[$€₽])?(?<![\w.,-])(?P<low>\d{1,3}(?:[   ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*)"
    r"(?:\s*(?:-|–|—|до|to)\s*(?P<high>\d{1,3}(?:[   ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*))?"
    r"(?:\s*\([^()]{1,40}\))?"
    r"(?:\s+(?:рабоч|календарн|полн|working|business|calendar|full)[а-я]*(?=\s))?"
    r"(?:[\s-]*(?P<unit>[$€₽%]|[^\W\d_]+))?"
)
_FIRST_YEAR = 1900
_YEAR = tuple(analyse(word)[0] for word in ("год", "года", "году"))
# A unit by how its word begins, the longer beginning first: "1 день", "3 дня" and "14 дней" are one unit.
_UNITS = {
    "day": ("ден", "дня", "дне", "дни", "сут", "day"),
    "hour": ("час", "hour"),
    "minute": ("мин", "minute"),
    "second": ("сек", "second"),
    "week": ("недел", "week"),
    "month": ("месяц", "мес", "month"),
    "year": ("год", "лет", "year"),
    "percent": ("%", "процент", "percent"),
    "rouble": ("₽", "руб"),
    "dollar": ("$", "доллар", "dollar", "usd"),
    "euro": ("€", "евро", "euro", "eur"),
    "piece": ("шт",),
    "time": ("раз", "time"),
}
_BEGINNINGS = {beginning: unit for unit, beginnings in _UNITS.items() for beginning in beginnings}


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures in a sentence.

    :param amounts: by unit the (least, most) of each amount; a unit is a known one or a word's stem, `""` where none
        stands behind the number.
    :param days: (month, day, year) of each date, year 0 where none is given.
    :param moments: times of day, canonical.
    :param telephones: digits of telephone numbers.
    :param units: the stems of all words that are part of a figure: units, months.
    """

    amounts: Mapping[str, tuple[Span, ...]]
    days: frozenset[tuple[int, int, int]]
    moments: frozenset[str]
    telephones: frozenset[str]
    units: frozenset[str]


@lru_cache(maxsize=4_000)
def figures(sentence: str) -> Figures:
    """The figures of one sentence."""
    remaining = fold(sentence)
    days: set[tuple[int, int, int]] = set()
    units: set[str] = set()
    for pattern in _DAYS:
        for match in pattern.finditer(remaining):
            days.add((_month(match["month"]), int(match["day"]), int(match["year"] or 0)))
            units.update((analyse(match["month"])[0], *_YEAR))
        remaining = pattern.sub(" ", remaining)
    moments = frozenset(f"{int(hour)}:{minute}" for hour, minute in _MOMENT.findall(remaining))
    remaining = _MOMENT.sub(" ", remaining)
    telephones = frozenset(re.sub(r"\D", "", number)[-10:] for number in _TELEPHONE.findall(remaining))
    remaining = _TELEPHONE.sub(" ", remaining)
    amounts: dict[str, tuple[Span, ...]] = {}
    for match in _AMOUNT.finditer(remaining):
        unit, stem = _unit(match["unit"] or "", match["currency"] or "")
        low = _value(match["low"], sentence)
        high = _value(match["high"], sentence) if match["high"] else low
        if low is not None and high is not None:
            if unit == "year" and low >= _FIRST_YEAR:
                unit = "calendar year"
            amounts[unit] = (*amounts.get(unit, ()), (low, max(low, high)))
            units.add(stem)
    return Figures(amounts, frozenset(days), moments, telephones, frozenset(units - {""}))


def _month(word: str) -> int:
    if word.isdigit():
        return int(word)
    return next(at for at, beginnings in enumerate(_MONTHS, 1) if word.startswith(beginnings))


def _value(number: str, sentence: str) -> float | None:
    values = numbers(number, sentence)
    try:
        return float(values[0])
    except (ValueError, IndexError):
        return None  # a version such as 1.2.3 is no amount


def _unit(word: str, currency: str) -> tuple[str, str]:
    """The unit, and the stem that its word has in the sentence."""
    word = currency or word
    if not word:
        return "", ""
    stem, stop = analyse(word)
    if stop:
        return "", ""
    for length in range(min(len(word), 7), 0, -1):
        if word[:length] in _BEGINNINGS and (length > 1 or len(word) == 1):
            return _BEGINNINGS[word[:length]], stem
    return stem, stem
