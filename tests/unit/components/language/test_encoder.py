import math

import pytest
from hypothesis import given

from components.language.encoder import encode_passage, encode_query
from components.language.encoder_settings import STANDARD, VECTORS
from tests.generated import texts


@given(texts, texts, texts)
def test_a_passage_always_encodes_the_same_and_to_finite_positive_weights(title: str, heading: str, text: str) -> None:
    vectors = encode_passage(title, heading, text, STANDARD)
    assert vectors == encode_passage(title, heading, text, STANDARD)
    assert set(vectors) == set(VECTORS)
    for vector in vectors.values():
        assert all(0 <= dimension < 2**32 for dimension in vector)
        assert all(math.isfinite(weight) and weight > 0 for weight in vector.values())


@given(texts)
def test_a_question_finds_the_passage_that_repeats_it(text: str) -> None:
    query, passage = encode_query(text, STANDARD), encode_passage("", "", text, STANDARD)
    assert query["text-sparse"].keys() == passage["text-sparse"].keys()
    assert query["grams"].keys() == passage["grams"].keys()


@pytest.mark.parametrize(
    ("one", "other"), [("Е20", "E20"), ("ещё", "еще"), ("СЛИВ", "слив"), ("cлить", "слить"), ("как слить", "слить")]
)
def test_two_spellings_are_one_query(one: str, other: str) -> None:
    assert encode_query(one, STANDARD) == encode_query(other, STANDARD)


def test_a_question_without_content_words_is_empty() -> None:
    assert not any(encode_query("и как?", STANDARD).values())


def test_a_word_repeated_weighs_more_but_less_than_twice() -> None:
    once, twice = (encode_passage("", "", text, STANDARD)["text-sparse"] for text in ("слив насос", "слив слив насос"))
    (dimension,) = encode_query("слив", STANDARD)["text-sparse"]
    assert once[dimension] < twice[dimension] < 2 * once[dimension]


def test_the_title_is_searched_with_the_text_and_as_heading() -> None:
    vectors, query = (
        encode_passage("Возврат товара", "Сроки", "Четырнадцать дней.", STANDARD),
        encode_query("возврат, сроки", STANDARD),
    )
    assert query["headings"].keys() == query["text-sparse"].keys()
    assert query["headings"].keys() <= vectors["headings"].keys()
    assert query["text-sparse"].keys() <= vectors["text-sparse"].keys()
