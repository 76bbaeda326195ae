"""The dictionary: right words in any form, and misspelt ones."""

from components.language.dictionary import is_word


def test_right_words_are_known_in_any_form() -> None:
    for word in ("лаком", "заправить", "отличается", "протёрла", "says", "unplugged", "Weather"):
        assert is_word(word)


def test_misspelt_words_are_unknown() -> None:
    for word in ("достака", "вернуь", "гаранития", "delivry", "pasword", "recieve"):
        assert not is_word(word)
