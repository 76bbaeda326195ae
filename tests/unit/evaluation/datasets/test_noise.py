import pytest

from components.language.identifiers import codes
from evaluation.datasets.noise import near_misses, typos, wrong_layout

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


def test_near_misses_are_other_codes_that_look_alike() -> None:
    known_codes = ("E10", "E20", "E25", "E30")
    pairs = near_misses(known_codes, ["ошибка {code}", "Что значит {code}?"], 60, seed=3)
    assert len(pairs) == 60
    assert pairs == near_misses(known_codes, ["ошибка {code}", "Что значит {code}?"], 60, seed=3)
    assert {"E21", "E201", "F20"} <= {code for code, _ in near_misses(known_codes, ["{code}"], 500, seed=1)}
    for code, question in pairs:
        assert code not in known_codes
        assert codes(question) == (code,)
