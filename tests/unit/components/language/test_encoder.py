from hypothesis import given

from components.language import encoder
from components.language.encoder import encode_passage, encode_query, encode_words, passage_words
from components.language.encoder_settings import STANDARD, EncoderSettings
from tests.generated import texts


@given(texts, texts, texts)
def test_dimensions_ascend_without_repetition(title: str, heading: str, text: str) -> None:
    dimensions, weights = encode_words(passage_words(title, heading, text), STANDARD)
    assert len(dimensions) == len(weights)
    assert (dimensions[1:] > dimensions[:-1]).all()


@given(texts)
def test_a_question_finds_the_passage_that_repeats_it(text: str) -> None:
    query, passage = encode_query(text, STANDARD), encode_passage(text, "", text, STANDARD)
    assert query.keys() == passage.keys()


def test_two_spellings_are_one_query() -> None:
    for one, other in (("Е20", "E20"), ("ещё", "еще"), ("СЛИВ", "слив"), ("cлить", "слить"), ("как слить", "слить")):
        assert encode_query(one, STANDARD) == encode_query(other, STANDARD)


def test_a_question_without_content_words_is_empty() -> None:
    assert not encode_query("и как?", STANDARD)


def score(question: str, title: str, heading: str, text: str, settings: EncoderSettings = STANDARD) -> float:
    passage = encode_passage(title, heading, text, settings)
    return sum(weight * passage.get(dimension, 0.0) for dimension, weight in encode_query(question, settings).items())


def test_a_word_of_the_title_or_a_heading_counts_more_than_one_of_the_text() -> None:
    in_text = score("возврат", "Товары", "Сроки", "Возврат за четырнадцать дней.")
    assert in_text > 0
    assert score("возврат", "Возврат", "Сроки", "Товары за четырнадцать дней.") > in_text
    assert score("возврат", "Товары", "Возврат", "Сроки четырнадцать дней.") > in_text


def test_an_identifier_weighs_more_than_other_words_of_a_question() -> None:
    weights = encode_query("ошибка Е20", STANDARD)
    assert {weights[one] for one in encode_query("E20", STANDARD)} == {encoder._CODE_WEIGHT}
    assert {weights[one] for one in encode_query("ошибка", STANDARD)} == {1.0}


def test_a_misspelt_word_is_found_by_its_grams() -> None:
    assert 0 < score("возвртат", "", "", "Возврат товара") < score("возврат", "", "", "Возврат товара")
