import pytest

from components.language import texts
from components.language.texts import keys, text


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
