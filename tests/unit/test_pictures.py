"""The pictures of README and docs show the templates and styles of today."""

import pytest

from components.language.texts import LOCALES
from tests import pictures


def test_pictures_were_taken_of_the_present_templates() -> None:
    assert pictures.recorded() == pictures.digests(), "run `python -m tests.browser.pictures` and look at the result"


@pytest.mark.parametrize("locale", LOCALES)
def test_each_picture_exists_in_light_dark_and_phone(locale: str) -> None:
    expected = {f"{name}{look}.png" for name in pictures.NAMES for look in ("", "-dark", "-phone")}
    assert {path.name for path in (pictures.FOLDER / locale).iterdir()} == expected
