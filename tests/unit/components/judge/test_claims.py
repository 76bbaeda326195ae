"""The hard rules: exact quotations, invented numbers and codes, rejected approaches."""

import pytest

from components.judge.claims import is_quoted, is_unfit, rejected_by
from components.turn import Claim, RejectedApproach
from tests.turns import passage

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


def test_a_claim_that_proposes_a_rejected_approach_is_found() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    assert rejected_by(Claim("Можно стучать по корпусу.", (1,)), [approach]) is approach
    assert rejected_by(Claim("Не стучите по корпусу.", (1,)), [approach]) is None
