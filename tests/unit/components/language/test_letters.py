import pytest

from components.language.letters import UNKNOWN_PAIR, letters, switched


@pytest.mark.parametrize(("word", "nonsense"), [("ошибка", "ьыщъжй"), ("возврат", "фывапролдж")])
def test_words_are_likelier_than_keys_hit_at_random(word: str, nonsense: str) -> None:
    assert letters("ru").cost(word) / len(word) < letters("ru").cost(nonsense) / len(nonsense)


def test_letters_of_another_alphabet_are_as_unlikely_as_can_be() -> None:
    assert letters("ru").cost("a") == 2 * UNKNOWN_PAIR


def test_neighbours_decide_a_doubtful_word_but_not_a_clear_one() -> None:
    assert switched([0.0], [0.0]) == [False]
    assert switched([0.0, 30.0], [0.0, 30.0]) == [True, True]
    assert switched([0.0, -30.0], [0.0, -30.0]) == [False, False]
    assert switched([40.0, -30.0, -30.0], [40.0, -30.0, -30.0]) == [True, False, False]
    assert switched([], []) == []
