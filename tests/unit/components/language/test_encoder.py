import math

import pytest
from hypothesis import given

from components.language import encoder
from components.language.encoder import encode_passage, encode_query, encode_words, passage_words
from components.language.encoder_settings import PARTS, STANDARD, EncoderSettings
from tests.generated import texts


@given(texts, texts, texts)
def test_a_passage_always_encodes_the_same_and_to_finite_positive_weights(title: str, heading: str, text: str) -> None:
    vector = encode_passage(title, heading, text, STANDARD)
    assert vector == encode_passage(title, heading, text, STANDARD)
    assert all(0 <= dimension < 2**32 for dimension in vector)
    assert all(math.isfinite(weight) and weight > 0 for weight in vector.values())


@given(texts, texts, texts)
def test_dimensions_ascend_without_repetition(title: str, heading: str, text: str) -> None:
    dimensions, weights = encode_words(passage_words(title, heading, text), STANDARD)
    assert len(dimensions) == len(weights)
    assert (dimensions[1:] > dimensions[:-1]).all()


def test_equal_hashes_of_two_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    separate = encode_passage("", "", "слив", STANDARD)
    encoder._terms.cache_clear()
    monkeypatch.setattr(encoder, "crc32", lambda _, seed=0: 7)
    together = encode_passage("", "", "слив", STANDARD)
    encoder._terms.cache_clear()
    assert together.keys() == {7}
    assert together[7] > max(separate.values())


@given(texts)
def test_a_question_finds_the_passage_that_repeats_it(text: str) -> None:
    query, passage = encode_query(text, STANDARD), encode_passage(text, "", text, STANDARD)
    assert query.keys() == passage.keys()


@pytest.mark.parametrize(
    ("one", "other"), [("Е20", "E20"), ("ещё", "еще"), ("СЛИВ", "слив"), ("cлить", "слить"), ("как слить", "слить")]
)
def test_two_spellings_are_one_query(one: str, other: str) -> None:
    assert encode_query(one, STANDARD) == encode_query(other, STANDARD)


def test_a_question_without_content_words_is_empty() -> None:
    assert not encode_query("и как?", STANDARD)


def test_a_word_repeated_weighs_more_but_less_than_twice() -> None:
    once, twice = (encode_passage("", "", text, STANDARD) for text in ("слив насос", "слив слив насос"))
    shared = encode_query("слив", STANDARD).keys() & once.keys()
    assert shared
    assert all(once[dimension] < twice[dimension] < 2 * once[dimension] for dimension in shared)


def score(question: str, title: str, heading: str, text: str, settings: EncoderSettings = STANDARD) -> float:
    passage = encode_passage(title, heading, text, settings)
    return sum(weight * passage.get(dimension, 0.0) for dimension, weight in encode_query(question, settings).items())


def test_a_word_of_the_title_or_a_heading_counts_more_than_one_of_the_text() -> None:
    in_text = score("возврат", "Товары", "Сроки", "Возврат за четырнадцать дней.")
    assert in_text > 0
    assert score("возврат", "Возврат", "Сроки", "Товары за четырнадцать дней.") > in_text
    assert score("возврат", "Товары", "Возврат", "Сроки четырнадцать дней.") > in_text


def test_a_share_is_a_factor_of_the_score_of_its_part() -> None:
    def shared(**shares: float) -> float:
        parts = {name: part.model_copy(update={"share": shares[name]}) for name, part in STANDARD.parts.items()}
        return score("возврат", "Возврат", "Сроки", "Возврат товара.", EncoderSettings(parts=parts))

    stems, grams, headings = (shared(**{"stems": 1e-9, "grams": 1e-9, "headings": 1e-9, name: 1.0}) for name in PARTS)
    assert min(stems, grams, headings) > 0
    assert shared(stems=1.0, grams=0.5, headings=2.0) == pytest.approx(stems + 0.5 * grams + 2 * headings, abs=1e-3)


def test_an_identifier_weighs_more_than_other_words_of_a_question() -> None:
    weights = encode_query("ошибка Е20", STANDARD)
    assert {weights[one] for one in encode_query("E20", STANDARD)} == {encoder._CODE_WEIGHT}
    assert {weights[one] for one in encode_query("ошибка", STANDARD)} == {1.0}


def test_a_misspelt_word_is_found_by_its_grams() -> None:
    assert 0 < score("возвртат", "", "", "Возврат товара") < score("возврат", "", "", "Возврат товара")
