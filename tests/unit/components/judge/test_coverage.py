"""The local judge's features on passages made by hand."""

from dataclasses import astuple, replace

import pytest
from hypothesis import given

from components.judge.analysis import analyse
from components.judge.coverage import Coverage, cover, prepare
from components.language.relatives import relatives
from tests.generated import lines, texts
from tests.turns import passage, query


def measured(question: str, text: str, heading: str = "") -> Coverage:
    return cover(prepare(query(question)), analyse(passage(text, heading=heading)))


def test_every_word_in_one_sentence_covers_all() -> None:
    found = measured("замена сливного фильтра", "Другое. Замена сливного фильтра проста.")
    assert found.sentence == pytest.approx(1)
    assert found.passage_soft == pytest.approx(1)
    assert found.order == 1
    assert found.names_missing == 0


def test_words_spread_over_sentences_cover_the_passage_and_no_sentence() -> None:
    found = measured("замена фильтра", "Замена бесплатна. Купите коробку. Нужен фильтр.")
    assert found.passage_soft == pytest.approx(1)
    assert found.sentence == pytest.approx(0.5)
    assert found.order == 0


def test_the_heading_is_every_sentences_context() -> None:
    assert measured("замена фильтра", "Нужен ключ.", heading="Замена фильтра").sentence == pytest.approx(1)


def test_derived_words_count_less_than_the_same() -> None:
    derived = measured("подключить насос", "Подключение насоса.")
    assert 0.5 < derived.sentence_soft < 1
    assert derived.sentence == pytest.approx(0.5)


def test_absent_names_are_told_by_weight() -> None:
    assert measured("Ремонт машин Волна", "Ремонт машин Бриз.").names_missing == 1
    assert measured("Ремонт машин Волна", "Ремонт машин Волна.").names_missing == 0
    assert measured("Ремонт машин", "Ремонт.").names_missing == 0


def test_the_first_word_is_no_name() -> None:
    assert measured("Ремонт машин", "Машины.").names_missing == 0


def test_a_guessed_word_counts_less_than_a_typed_one() -> None:
    typed = query("замена фильтра")
    guessed = replace(typed, doubtful=frozenset(typed.weights))
    text = analyse(passage("Замена фильтра."))
    assert cover(prepare(guessed), text).sentence < cover(prepare(typed), text).sentence


def test_nothing_asked_covers_nothing() -> None:
    assert set(astuple(measured("а и но", "Замена фильтра."))) == {0.0}


@given(texts, lines, texts)
def test_features_are_shares(question: str, text: str, heading: str) -> None:
    found = measured(question, text, heading)
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in astuple(found))
    assert found.sentence <= found.sentence_soft + 1e-9 <= found.passage_soft + 2e-9


def test_relatives_share_a_beginning() -> None:
    analysis = analyse(passage("Подключение и подключаемый. Подкова."))
    (stem,) = query("подключить").weights
    assert relatives(stem, analysis.families)
    assert not relatives("подк", analysis.families)
