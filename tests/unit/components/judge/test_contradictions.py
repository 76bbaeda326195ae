"""A contradiction is one differing fact between sentences about the same thing; anything less clear is ignored."""

from collections.abc import Sequence

import pytest

from components.judge.contradictions import contradictions
from tests.turns import passage


def kinds(one: str, other: str, titles: Sequence[str] = ("", "")) -> list[str]:
    first, second = (
        passage(text, name, title=title) for name, text, title in zip("ab", (one, other), titles, strict=True)
    )
    return [kind for kind, _, _ in contradictions(first, second)]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Посуду можно вернуть в течение 14 дней.", "Вернуть посуду можно в течение 30 дней.", "number"),
        ("Возврат посуды занимает 1 день.", "Возврат посуды занимает 3 дня.", "number"),
        ("Доставка по городу стоит 300 рублей.", "Доставка по городу стоит 1 300 руб.", "number"),
        ("Заявку рассматривают 3–5 рабочих дней.", "Заявку рассматривают 10–15 рабочих дней.", "number"),
        ("Delivery to the city takes 2 days.", "Delivery to the city takes 5 days.", "number"),
        ("Новый тариф действует с 1 марта 2026.", "Новый тариф действует с 1 апреля 2026.", "date"),
        ("Договор продлён до 01.03.2026.", "Договор продлён до 01.04.2026.", "date"),
        ("Склад на Садовой открыт с 9:00.", "Склад на Садовой открыт с 10:00.", "date"),
        ("Телефон отдела заказов: 8 800 100-20-30.", "Телефон отдела заказов: +7 800 100-20-31.", "code"),
        ("Скидка на первый заказ по промокоду AB10.", "Скидка на первый заказ по промокоду AB20.", "code"),
        ("Фильтр насоса нужно чистить щёткой.", "Фильтр насоса не нужно чистить щёткой.", "negation"),
        ("- Посуду можно вернуть за 14 дней.", "2. Посуду можно вернуть за 30 дней.", "number"),
    ],
)
def test_one_differing_fact_is_a_contradiction(one: str, other: str, kind: str) -> None:
    assert kinds(one, other) == kinds(other, one) == [kind]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Посуду можно вернуть в течение 14 дней.", "Посуду можно вернуть в течение 14 дней."),
        ("Посуду можно вернуть в течение 14 дней.", "Бракованную посуду можно вернуть в течение 30 дней."),
        ("Посуду можно вернуть за 14 дней.", "Технику можно вернуть за 30 дней."),
        ("Посуду можно вернуть за 14 дней.", "Если посуду вернуть за 30 дней."),
        ("Посуду можно вернуть за 14 дней.", "Посуду можно вернуть за 2 недели."),
        ("Посуду можно вернуть до 01.02.2026.", "Посуду можно вернуть до 1 февраля 2026."),
        ("Посуду можно вернуть за 14 дней и 300 рублей.", "Посуду можно вернуть за 30 дней и 500 рублей."),
        ("Посуду можно вернуть за 14 дней?", "Посуду можно вернуть за 30 дней."),
        ("Посуду можно вернуть за 14 дней", "Посуду можно вернуть за 30 дней"),
        ("| Посуду вернуть | 14 дней |", "| Посуду вернуть | 30 дней |"),
        ("Ошибка E20 говорит о засоре насоса.", "Ошибка E30 говорит о засоре насоса."),
        ("Насос меняют за 3 дня.", "Пароль меняют за 5 дней."),
        ("Оплата не картой.", "Оплата картой."),
        ("Ничего.", "Ничто."),
    ],
)
def test_anything_less_clear_is_no_contradiction(one: str, other: str) -> None:
    assert kinds(one, other) == kinds(other, one) == []


def test_titles_about_different_things_are_no_contradiction() -> None:
    one, other = "Товар можно вернуть за 14 дней.", "Товар можно вернуть за 30 дней."
    assert kinds(one, other, ("Возврат товара", "Частые вопросы")) == ["number"]
    assert kinds(one, other, ("Магазин в Риге", "Магазин в Вене")) == []
    assert kinds(one, other, ("Товар", "Модель 300")) == []
