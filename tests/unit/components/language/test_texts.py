"""Texts of both languages: keys, numbers and Markdown on one line."""

import pytest

from components.language import texts
from components.language.marks import on_one_line
from components.language.texts import keys, number, percent, terminal_locale, text


def _some_key() -> str:
    return next(key for key in keys("") if "{" not in text(key, "ru"))


def test_an_unknown_locale_falls_back_to_russian() -> None:
    key = _some_key()
    assert text(key, "de") == text(key, "ru")


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        text("nowhere.nothing", "ru")


def test_a_key_that_one_locale_lacks_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"ru": {"a.russian": "да"}, "en": {"a.english": "yes"}}
    monkeypatch.setattr(texts, "_texts", lambda locale: only.get(locale, {}))
    assert text("a.english", "ru") == "yes"
    assert text("a.russian", "en") == "да"


def test_placeholders_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_texts", lambda locale: {"a.b": "{n} из {total}"} if locale == "ru" else {})
    assert text("a.b", "ru", n=1, total=2) == "1 из 2"
    with pytest.raises(KeyError):
        text("a.b", "ru", n=1)


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "ru_RU.UTF-8"}, "ru"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "ru_RU.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ru_RU.UTF-8", "LC_ALL": ""}, "ru"),
    ],
)
def test_the_language_of_the_terminal(
    environment: dict[str, str], locale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal_locale() == locale


def test_a_number_is_written_as_its_language_does() -> None:
    for value, digits, russian, english in (
        (0, 0, "0", "0"),
        (7.26, 1, "7,3", "7.3"),
        (1234, 0, "1234", "1,234"),
        (12345.6, 1, "12\u00a0345,6", "12,345.6"),
        (0.25, None, "0,25", "0.25"),
        (20.0, None, "20", "20"),
        (1234567, 0, "1\u00a0234\u00a0567", "1,234,567"),
    ):
        assert number(value, digits, locale="ru") == russian
        assert number(value, digits, locale="en") == english


def test_a_share_of_nothing_is_a_dash() -> None:
    assert percent(1 / 3, locale="ru") == "33\u00a0%"
    assert percent(0.0525, 1, locale="en") == "5.2%"
    assert percent(None, locale="ru") == "–"


def test_marks_of_lines_are_left_out() -> None:
    markdown = "### Causes\n\n- the filter is *not* clean;\n  - 2-5 °C\n\n1. Open it.\n\n```sh\nls | wc\n```"
    assert on_one_line(markdown) == "Causes the filter is *not* clean; 2-5 °C 1. Open it. ls | wc"
    assert on_one_line("| Size | Price |\n| --- | --- |\n| 22 cm | £4 |") == "Size | Price 22 cm | £4"
