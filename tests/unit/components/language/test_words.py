from hypothesis import given

from components.language.normalise import clean
from components.language.words import stems, words
from tests.generated import texts


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
