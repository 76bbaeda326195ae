"""The language of the terminal that a command runs in."""

import os

from components.language.texts import LOCALES


def terminal_locale() -> str:
    """Russian or English as the environment says; English for a language that we lack, Russian when it says nothing."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    language = locale[:2].lower()
    if language in LOCALES:
        return language
    return LOCALES[0] if locale.partition(".")[0] in {"", "C", "POSIX"} else "en"
