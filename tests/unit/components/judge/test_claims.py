"""The hard rules: exact quotations, invented numbers and codes, rejected approaches."""

import pytest

from components.judge.approaches import coverage, proposed
from components.judge.claims import is_quoted, is_unfit, rejected_by, unknown_codes
from components.turn import Claim, RejectedApproach
from tests.turns import passage, query

SOURCE = passage(
    "1. Код E20 означает, что вода не сливается.\n2. Доставка стоит 1 200 ₽, подъём 1,5 тыс. Гарантия 24 месяца."
)


@pytest.mark.parametrize(
    "claim", ["Код E20 означает, что вода не сливается.", "1. код e20 означает", "Гарантия 24 месяца."]
)
def test_words_of_the_passage_are_quoted(claim: str) -> None:
    assert is_quoted(claim, SOURCE)


def test_parts_of_words_and_numbers_are_no_quotations() -> None:
    for claim in ("E2", "Доставка стоит 1", "200 ₽", "подъём 1", "вода сливается", "", "Гарантия два года."):
        assert not is_quoted(claim, SOURCE)


def test_a_code_or_number_of_no_source_is_invented() -> None:
    for claim in ("Ошибка E25 означает засор.", "Доставка стоит 1 300 ₽.", "Гарантия 36 месяцев.", "Скидка 87 %."):
        assert is_unfit(claim, ["вопрос", SOURCE.text])


def test_numbers_of_the_sources_the_question_and_counts_may_be_said() -> None:
    for claim in (
        "Доставка обойдётся в 1200 ₽.",
        "Есть 2 способа.",
        "3. Очистите фильтр.",
        "За 500 ₽ доставки нет.",
        "Гарантия действует 24 месяца.",
    ):
        assert not is_unfit(claim, ["можно за 500 ₽?", SOURCE.text])


def test_a_code_may_be_spelt_with_its_letters_apart() -> None:
    for code, text, is_known in (
        ("TLS1.1", "Enable TLS 1.1.", True),
        ("MQ7.5", "IBM MQ-7.5 and later", True),
        ("E20", "ошибка e 20", True),
        ("404", "код 404", True),
        ("TLS1.1", "TLS 1.12, TLS 1.1.3, ATLS 1.1", False),
        ("E2", "E20, E 2.5", False),
    ):
        assert (unknown_codes([code], [text]) == ()) == is_known


def test_a_ratio_is_the_same_with_and_without_spaces() -> None:
    source = "We recommend a ratio of 1.25: 1 and a pause from 10:30."
    assert not is_unfit("Use a ratio of 1.25:1, and pause from 10: 30.", ["question", source])
    assert not is_unfit("Version 10: 30 fixes, a ratio of 1.25.", ["10 and 30?", source])
    assert is_unfit("Use a ratio of 1.25:2.", ["question", source])


def test_a_claim_that_proposes_a_rejected_approach_is_found() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    assert rejected_by(Claim("Можно стучать по корпусу.", (1,)), [approach]) is approach
    assert rejected_by(Claim("Не стучите по корпусу.", (1,)), [approach]) is None


RESET = RejectedApproach("1", "Сбросить плату кнопкой питания", "стирается калибровка", "2025-05-05")


@pytest.mark.parametrize(
    "sentence",
    [
        "Сбросить плату кнопкой питания.",
        "Для сброса платы удерживайте кнопку питания 10 секунд.",
        "Удерживайте кнопку питания, чтобы сбросить плату, затем отпустите.",
    ],
)
def test_a_paraphrased_proposal_is_recognised(sentence: str) -> None:
    assert proposed(sentence, RESET)


def test_a_different_or_opposite_sentence_is_no_proposal() -> None:
    for sentence in (
        "Чтобы сбросить плату, отключите машину от сети.",
        "Нажмите кнопку питания.",
        "Не сбрасывайте плату кнопкой питания.",
        "Плату нельзя сбросить кнопкой питания.",
        "",
    ):
        assert not proposed(sentence, RESET)


def test_coverage_is_the_weight_share_of_the_question() -> None:
    question = query("сбросить плату телефона").weights
    assert coverage(question, RESET.text) == pytest.approx(2 / 3)
    assert coverage(query("подключение").weights, "Подключить шланг") == pytest.approx(0.6)
    assert coverage(query("погода").weights, RESET.text) == 0.0
