"""The word lists of spelling: counted letters, and the forms and the filter of dictionaries."""

import json
from pathlib import Path

import pytest

from components.language import letters
from components.language.letters import ALPHABETS
from evaluation.training.spelling import count, forms, write_letters


def test_a_table_is_counted_from_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ru.txt").write_text("кот кот Ёж", encoding="utf-8")
    (tmp_path / "en.txt").write_text("cat the cat", encoding="utf-8")
    monkeypatch.setattr(letters, "FILE", tmp_path / "letters.json")
    write_letters(tmp_path / "ru.txt", tmp_path / "en.txt")
    tables = json.loads((tmp_path / "letters.json").read_text(encoding="utf-8"))
    assert tables == {
        "ru": count("кот кот еж", "ru"),
        "en": count("cat the cat", "en"),
    }
    assert tables["ru"]["frequent"] == "еж кот"
    row = tables["en"]["pairs"][1 + ALPHABETS["en"].index("c")]
    assert min(row) == row[1 + ALPHABETS["en"].index("a")]


def test_forms_follow_the_affixes_of_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "xx.aff").write_text("SFX A Y 2\nSFX A y ies [^aeiou]y\nSFX A 0 s [^y]\nPFX B Y 1\nPFX B 0 re .\n")
    (tmp_path / "xx.dic").write_text("2\ncity/A\nplay/AB\n")
    assert list(forms(tmp_path / "xx.dic")) == ["city", "cities", "play", "replay"]
