from hypothesis import given
from hypothesis import strategies as st

from components.language.normalise import clean
from components.language.sentences import sentence_spans
from tests.generated import lines, texts


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
