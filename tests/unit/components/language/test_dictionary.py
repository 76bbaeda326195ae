"""The dictionary: right words in any form, and misspelt ones."""

import pytest

from components.language.dictionary import is_word


@pytest.mark.parametrize("word", ["лаком", "заправить", "отличается", "протёрла", "says", "unplugged", "Weather"])
def test_right_words_are_known_in_any_form(word: str) -> None:
    assert is_word(word)


@pytest.mark.parametrize("word", ["достака", "вернуь", "гаранития", "delivry", "pasword", "recieve"])
def test_misspelt_words_are_unknown(word: str) -> None:
    assert not is_word(word)
