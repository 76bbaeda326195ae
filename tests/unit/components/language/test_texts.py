import pytest

from components.language import texts
from components.language.texts import keys, terminal_locale, text


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
