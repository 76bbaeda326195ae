"""Figures in sentences: one unit however it is declined, one day however it is written."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.language.amounts import figures
from components.language.texts import day
from tests.generated import texts


@pytest.mark.parametrize(
    ("sentence", "amounts"),
    [
        ("Вернуть товар можно в течение 14 дней.", {"day": ((14, 14),)}),
        ("Ждать 1 день или 3 дня.", {"day": ((1, 1), (3, 3))}),
        ("В течение 14 (четырнадцати) календарных дней.", {"day": ((14, 14),)}),
        ("Срок от 3 до 5 рабочих дней, цена 1 200 ₽.", {"day": ((3, 5),), "rouble": ((1200, 1200),)}),
        ("Доставка стоит 300 рублей, а за МКАД — 500 руб.", {"rouble": ((300, 300), (500, 500))}),
        ("Delivery costs $15 and takes 2-3 business days.", {"dollar": ((15, 15),), "day": ((2, 3),)}),
        (
            "Up to 2,900 units, 2.5 GB, 99.9%.",
            {"unit": ((2900, 2900),), "gb": ((2.5, 2.5),), "percent": ((99.9, 99.9),)},
        ),
        ("Основан в 2019 году, гарантия 2 года.", {"calendar year": ((2019, 2019),), "year": ((2, 2),)}),
        ("Версия 1.2.3, код E20.", {}),
        ("Наберите 5.", {"": ((5, 5),)}),
        ("Ничего.", {}),
    ],
)
def test_amounts_by_unit(sentence: str, amounts: dict[str, tuple[tuple[float, float], ...]]) -> None:
    assert figures(sentence).amounts == amounts


@pytest.mark.parametrize(
    ("sentence", "days"),
    [
        ("до 31 января 2025 года", {(1, 31, 2025)}),
        ("до 1 марта", {(3, 1, 0)}),
        ("с 9 мая по 1 июня 2026 г.", {(5, 9, 0), (6, 1, 2026)}),
        ("не позднее 01.03.2024", {(3, 1, 2024)}),
        ("by 2024-03-01", {(3, 1, 2024)}),
        ("on March 1, 2024", {(3, 1, 2024)}),
        ("on 1 March 2024", {(3, 1, 2024)}),
        ("в мае 2024", set()),
    ],
)
def test_days(sentence: str, days: set[tuple[int, int, int]]) -> None:
    result = figures(sentence)
    assert result.days == days
    if days:
        assert not result.amounts


def test_moments_and_telephones_are_no_amounts() -> None:
    result = figures("Звоните 8 (800) 100-20-30 с 09:00 до 18:00.")
    assert result.telephones == {"8001002030"}
    assert result.moments == {"9:00", "18:00"}
    assert not result.amounts
    assert figures("+7 800 100 20 30").telephones == result.telephones


@given(texts)
def test_any_text_has_figures(text: str) -> None:
    result = figures(text)
    assert all(low <= high for spans in result.amounts.values() for low, high in spans)


@given(st.dates(min_value=date(1000, 1, 1)))
def test_a_day_is_formatted_by_locale(when: date) -> None:
    iso = when.isoformat()
    assert day(iso, "ru").split(".") == [iso[8:], iso[5:7], iso[:4]]
    number, month, year = day(iso, "en").split()
    assert (int(number), int(year), month.isalpha()) == (int(iso[8:]), int(iso[:4]), True)


def test_an_invalid_day_is_unchanged() -> None:
    assert day("", "ru") == ""
    assert day("вчера", "en") == "вчера"
