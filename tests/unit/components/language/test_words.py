"""Spelling, sentences and words of a text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.language.normalise import clean, fold
from components.language.sentences import sentence_spans
from components.language.words import stems, words
from tests.generated import lines, texts


@given(texts)
def test_words_are_in_order_and_quote_the_text(text: str) -> None:
    end = 0
    for word in words(text):
        assert end <= word.start < word.end <= len(text)
        assert text[word.start : word.end] == word.text
        assert word.stem
        end = word.end


def test_two_spellings_share_one_stem() -> None:
    for one, other in (
        ("машина", "машины"),
        ("стиральную", "стиральной"),
        ("ещё мёд", "еще мед"),
        ("Е20", "E20"),
        ("е20", "e20"),
        ("1С", "1C"),
        ("2х", "2x"),
        ("cлить", "слить"),
        ("НЕ СЛИВАЕТ", "не сливает"),
        ("returns", "returned"),
        ("10,5", "10.5"),
        ("стира\u00adльная", "стиральная"),
        ("краи\u0306", "край"),
    ):
        assert stems(clean(one)) == stems(clean(other))


def test_different_words_have_different_stems() -> None:
    for one, other in (("E20", "E25"), ("E20", "E201"), ("слив", "сливки"), ("10.5", "105")):
        assert stems(one) != stems(other)


def test_negations_are_content_words() -> None:
    for negation in ("не", "нет", "без", "not", "no", "without"):
        assert stems(negation), negation


def test_function_words_carry_no_topic() -> None:
    for word in ("и", "как", "чтобы", "the", "how"):
        assert stems(word) == []


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


@given(st.one_of(texts, lines).map(clean))
def test_spans_cover_all_text_in_order_without_overlap(text: str) -> None:
    spans = sentence_spans(text)
    end = 0
    for start, stop in spans:
        assert end <= start < stop <= len(text)
        assert not text[end:start].strip()
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    assert not text[end:].strip()


def test_sentences() -> None:
    for text, sentences in (
        ("Закройте кран. Слейте воду!", ["Закройте кран.", "Слейте воду!"]),
        ("Стоит 10.5 тыс. руб. в год.", ["Стоит 10.5 тыс. руб. в год."]),
        ("Это срок, т. е. 14 дней. Потом нельзя.", ["Это срок, т. е. 14 дней.", "Потом нельзя."]),
        ("# Слив\nПервое. Второе.", ["# Слив", "Первое.", "Второе."]),
        ("- один. два.\n- три", ["- один. два.", "- три"]),
        ("1. Отключите\n2. Подождите", ["1. Отключите", "2. Подождите"]),
        ("| код | смысл |\n| E20 | слив. насос. |", ["| код | смысл |", "| E20 | слив. насос. |"]),
        ("```\na. b. c.\n```\nПосле.", ["```\na. b. c.\n```", "После."]),
        ("перенос\nстроки. Конец.", ["перенос\nстроки.", "Конец."]),
        ("", []),
        (" \n ", []),
    ):
        assert [text[start:end] for start, end in sentence_spans(text)] == sentences
