"""Questions in the words of the articles, where a tenant has said which words mean the same."""

from components.language.words import stems
from components.understand.synonyms import common_synonyms, with_known_synonyms

KNOWN = frozenset(stems("стиральная машина не сливает воду, личный кабинет, пароль"))
GROUPS = (("стиралка", "стиральная машина"), ("лк", "личный кабинет", "учётка"), ("бак", "барабан"))


def test_unknown_words_are_replaced_by_known_synonyms() -> None:
    for question, meant in (
        ("Стиралка не сливает", "стиральная машина не сливает"),
        ("не сливает стиралку, а стиралка новая", "не сливает стиральная машина, а стиральная машина новая"),
        ("пароль от лк", "пароль от личный кабинет"),
        ("Забыл учётку", "Забыл личный кабинет"),
        ("стиральная машина", "стиральная машина"),
        ("бак и барабан", "бак и барабан"),
        ("стиралочка", "стиралочка"),
        ("", ""),
    ):
        assert with_known_synonyms(question, GROUPS, KNOWN) == meant


def test_common_synonyms_stand_in_for_unknown_words() -> None:
    for question, known, meant in (
        ("How much is delivery?", "the price of delivery", "price is delivery?"),
        ("It makes too much noise", "noise, price", "It makes too much noise"),
        ("есть кешбек", "бонусы за покупки", "есть бонусы"),
        ("How much powder?", "much powder, price", "How much powder?"),
    ):
        assert with_known_synonyms(question, common_synonyms(), frozenset(stems(known))) == meant
