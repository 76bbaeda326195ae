import pytest

from components.language.identifiers import codes
from evaluation.datasets.noise import typos, wrong_layout

QUESTION = "Стиральная машина показывает ошибку E20, что делать?"


@pytest.mark.parametrize("count", [1, 2])
def test_typing_errors_are_made_reproducibly_and_leave_codes_alone(count: int) -> None:
    for seed in range(50):
        noisy = typos(QUESTION, count, seed)
        assert noisy == typos(QUESTION, count, seed)
        assert noisy != QUESTION
        assert codes(noisy) == ("E20",)


def test_the_wrong_layout_is_a_russian_keyboard_read_as_an_english_one() -> None:
    assert wrong_layout("ошибка Е20?") == "jib,rf T20&"
    assert wrong_layout("как сбросить пароль от Wi-Fi") == "rfr c,hjcbnm gfhjkm jn Wi-Fi"
