"""Repair of mistyped questions, with the demo knowledge base and a small vocabulary."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.language.keyboard import layout
from components.language.normalise import clean, fold
from components.language.recovery import Recovered, recover, vocabulary_of
from components.language.spelling import spelling
from components.language.transliteration import transliterations
from components.language.vocabulary import Vocabulary
from components.language.words import one_script, stems, words
from evaluation.datasets.noise import transliterated, typos, wrong_layout
from settings import ROOT

_DEMO = ROOT / "evaluation" / "demo"
_NAMES = "VPN API Kubernetes PostgreSQL TLS DNS CPU IP iPhone Wi-Fi E20 USB-C nginx".split()
_ENGLISH = [
    "how to return my order",
    "The washing machine does not drain",
    "password reset",
    "Do I have to pay for delivery?",
    "error E20, what's wrong?",
    "Is the drum covered by the warranty?",
]


def _word_counts(*parts: str) -> dict[str, int]:
    return dict(Counter(fold(one_script(word.text)) for part in parts for word in words(clean(part))))


def _articles(locale: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((_DEMO / locale).glob("*.md"))]


_RUSSIAN = vocabulary_of(_word_counts(*_articles("ru")))
_QUESTIONS = [
    case["question"]
    for case in map(json.loads, (_DEMO / "fixture.jsonl").read_text(encoding="utf-8").splitlines())
    if case["locale"] == "ru" and case["question"][0] >= "А"
]
_RECOVERABLE = [question for question in _QUESTIONS if len(stems(question)) >= 2]
_MANUAL = Vocabulary(
    _word_counts("стиральная машина не сливает воду ошибка насос фильтр возврат товара вернуть заказ балансировщик")
    | {"слив": 9}
)


def test_text_in_the_wrong_layout_is_repaired() -> None:
    for typed, meant in (
        ("jib,rf t20", "ошибка е20"),
        ("Rfr dthyenm njdfh&", "Как вернуть товар?"),
        ("rfr dthyenm njdfh?", "как вернуть товар?"),
        ("dgy yt hf,jnftn", "впн не работает"),
        ("rfr yfcnhjbnm VPN", "как настроить VPN"),
        ("{jxe dthyenm @njdfh@", 'Хочу вернуть "товар"'),
        ("ghbitk ,hfrjdfyysq njdfh/", "пришел бракованный товар."),
        ("куегкт ещ ершы", "return to this"),
        ("рщц вщ ш зфн", "how do i pay"),
        ("Jib,rf E20", "Ошибка E20"),
        ("стиральная vfibyf", "стиральная машина"),
    ):
        assert layout(typed, _RUSSIAN) == meant


@pytest.mark.parametrize("vocabulary", [Vocabulary({}), _RUSSIAN, _MANUAL])
def test_correct_text_is_unchanged(vocabulary: Vocabulary) -> None:
    for text in [*_NAMES, *_ENGLISH, *_QUESTIONS, " ".join(_NAMES), f"как настроить {_NAMES}"]:
        assert layout(text, vocabulary) is None
        assert transliterations(text, vocabulary) == ()


def test_addresses_and_paths_are_never_words() -> None:
    for address in ("user@example.com", "https://example.com/a_b", "C:\\Temp", "a/b", "key=value", "#tag"):
        assert layout(address) is None
        assert transliterations(address) == ()


def test_transliterated_russian_is_restored() -> None:
    for typed, meant in (
        ("kak vernut tovar", "как вернуть товар"),
        ("kak vernut' tovar, esli net cheka?", "как вернуть товар, если нет чека?"),
        ("Kak vernut TOVAR", "Как вернуть ТОВАР"),
        ("KAK VERNUT TOVAR", "КАК ВЕРНУТЬ ТОВАР"),
        ("mashina ne slivaet vodu", "машина не сливает воду"),
        ("mashyna ne slivaet", "машина не сливает"),
        ("oshibka E20", "ошибка E20"),
        ("как vernut товар", "как вернуть товар"),
        ("4to delat", "что делать"),
        ("vozvrat i obmen", "возврат и обмен"),
    ):
        assert transliterations(typed, _RUSSIAN)[0] == meant


def test_every_scheme_leads_to_the_word_that_the_knowledge_base_uses() -> None:
    for spelled, word in (
        ("shchetka", "щетка"),
        ("schetka", "щетка"),
        ("shhetka", "щетка"),
        ("wetka", "щетка"),
        ("khranenie", "хранение"),
        ("hranenie", "хранение"),
        ("xranenie", "хранение"),
        ("cena", "цена"),
        ("tsena", "цена"),
        ("garantija", "гарантия"),
        ("garantiya", "гарантия"),
        ("garantiia", "гарантия"),
        ("zhaloba", "жалоба"),
        ("ob'yavlenie", "объявление"),
        ("moj", "мой"),
        ("novyj", "новый"),
        ("novyy", "новый"),
    ):
        assert transliterations(f"kakaya {spelled}", Vocabulary({word: 3}))[0] == f"какая {word}"


def test_typing_errors_are_corrected() -> None:
    for typed, meant in (
        ("стиральая", "стиральная"),
        ("машна", "машина"),
        ("вовзрат товра", "возврат товара"),
        ("Фльтр", "Фильтр"),
        ("балонсирвщик", "балансировщик"),
        ("ВЕРНУТ ЗАКЗ", "ВЕРНУТ ЗАКАЗ"),
    ):
        assert spelling(typed, _MANUAL) == meant


def test_correct_words_are_not_corrected() -> None:
    for text, why in (
        ("E21 H1 404 10.5", "codes and numbers"),
        ("машинами фильтры возвратов", "other forms of known words"),
        ("нсс", "too short"),
        ("сливв воды", None),
        ("мшна", "two errors in a short word"),
        ("НАСОЧ ВОДЫ", None),
        ("бегемот", "a word of no knowledge base"),
        ("как где почему", "frequent words"),
    ):
        assert (spelling(text, _MANUAL) is None) == (why is not None)


def test_the_more_frequent_of_two_near_words_is_chosen() -> None:
    assert spelling("ккран", Vocabulary({"кран": 1, "экран": 90})) == "экран"
    assert spelling("ккран", Vocabulary({"кран": 90, "экран": 1})) == "кран"


def test_a_question_in_the_wrong_layout_is_recovered() -> None:
    for question in _RECOVERABLE:
        recovered = recover(wrong_layout(question), _RUSSIAN)
        assert recovered is not None, question
        assert recovered.kind == "layout"
        assert stems(recovered.text) == stems(question)


def test_most_transliterated_questions_are_restored() -> None:
    result = expected = 0
    for seed, question in enumerate(_RECOVERABLE):
        recovered = recover(transliterated(question, seed), _RUSSIAN)
        assert recovered is not None
        assert recovered.kind == "transliteration"
        result += len(set(stems(question)) & set(stems(recovered.text)))
        expected += len(set(stems(question)))
    assert result >= 0.9 * expected


def test_typing_errors_in_known_words_are_corrected() -> None:
    sentences = [line for article in _articles("ru") for line in article.splitlines() if 4 <= len(stems(line)) <= 12]
    broken = repaired = 0
    for seed, sentence in enumerate(sentences):
        mistyped = typos(sentence, 2, seed)
        recovered = recover(mistyped, _RUSSIAN)
        lost = set(stems(sentence)) - set(stems(mistyped))
        broken += len(lost)
        repaired += len(lost & set(stems(recovered.text))) if recovered else 0
    assert broken > 100
    assert repaired >= 0.85 * broken


@given(st.lists(st.sampled_from(sorted(_RUSSIAN.words)), min_size=1, max_size=8).map(" ".join))
def test_words_of_the_knowledge_base_are_never_touched(text: str) -> None:
    assert recover(text, _RUSSIAN) is None
    assert spelling(text, _RUSSIAN) is None


@pytest.mark.parametrize(
    ("word", "opposite"), [("немедленно", "медленно"), ("доступен", "недоступен"), ("unavailable", "available")]
)
def test_a_word_is_never_corrected_to_its_opposite(word: str, opposite: str) -> None:
    assert spelling(word, Vocabulary({opposite: 50})) is None


def test_an_empty_knowledge_base_corrects_nothing_but_knows_the_layout() -> None:
    empty = Vocabulary({})
    assert recover("стиральая мащина", empty) is None
    assert recover("rfr dthyenm ltymub", empty) == Recovered("layout", "как вернуть деньги")


def test_a_code_is_known_in_either_alphabet() -> None:
    known = Vocabulary({"е20": 1})
    assert known.holds("E20")
    assert known.holds("Е20")
    assert not known.holds("E25")


@pytest.mark.parametrize(
    ("typed", "known"),
    [("протёрла лаком", "люком"), ("как заправить порошок", "заплатить"), ("чем отличается", "отключается")],
)
def test_a_right_word_is_not_taken_for_a_slip(typed: str, known: str) -> None:
    assert spelling(typed, Vocabulary({known: 20})) is None
