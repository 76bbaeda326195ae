import unicodedata

import pytest
from hypothesis import given

from components.language.normalise import clean, fold
from tests.generated import texts


@given(texts)
def test_clean_text_is_composed_and_holds_nothing_invisible(text: str) -> None:
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not {char for char in cleaned if unicodedata.category(char) == "Cc"} - {"\n", "\t"}
    assert not set(cleaned) & set("\u00ad\u200b\u200d\u2060\ufeff\u00a0\u2028")


@given(texts)
def test_folding_keeps_every_offset(text: str) -> None:
    assert len(fold(text)) == len(text)


def test_text_is_stored_in_one_spelling() -> None:
    for spelling, stored in (
        ("сти\u0306ральная", "стйральная"),
        ("сти\u00adраль\u00adная ма\u200bшина", "стиральная машина"),
        ("и\u200b\u0306", "й"),
        ("10\u00a0000\u202fруб.", "10 000 руб."),
        ("одна\r\nдве\rтри\u2028четыре", "одна\nдве\nтри\nчетыре"),
        ("\ufeffначало\x00", "начало"),
        ("столбец\tстолбец", "столбец\tстолбец"),
    ):
        assert clean(spelling) == stored


@pytest.mark.parametrize(("spelling", "folded"), [("Ещё Ёж", "еще еж"), ("E20", "e20"), ("İx", "İx")])
def test_case_and_yo_are_folded(spelling: str, folded: str) -> None:
    assert fold(spelling) == folded
