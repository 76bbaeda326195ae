"""Rejected approaches: how much of a question they cover, and which sentences propose them."""

import pytest

from components.judge.approaches import coverage, proposed
from components.turn import RejectedApproach
from tests.turns import query

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
