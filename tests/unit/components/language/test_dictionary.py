"""The dictionary: right words in any form, and misspelt ones."""

from pathlib import Path

import pytest

from components.language.dictionary import bloom_filter, forms, is_word


@pytest.mark.parametrize("word", ["лаком", "заправить", "отличается", "протёрла", "says", "unplugged", "Weather"])
def test_right_words_are_known_in_any_form(word: str) -> None:
    assert is_word(word)


@pytest.mark.parametrize("word", ["достака", "вернуь", "гаранития", "delivry", "pasword", "recieve"])
def test_misspelt_words_are_unknown(word: str) -> None:
    assert not is_word(word)


def test_forms_follow_the_affixes_of_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "xx.aff").write_text("SFX A Y 2\nSFX A y ies [^aeiou]y\nSFX A 0 s [^y]\nPFX B Y 1\nPFX B 0 re .\n")
    (tmp_path / "xx.dic").write_text("2\ncity/A\nplay/AB\n")
    assert list(forms(tmp_path / "xx.dic")) == ["city", "cities", "play", "replay"]


def test_a_filter_takes_ten_bits_for_each_stem() -> None:
    assert len(bloom_filter(f"stem{number}" for number in range(800))) == 1_000
