"""Words for the codes on the page "Why this answer"."""

from typing import get_args

import pytest

from components.language import texts
from components.language.texts import LOCALES
from components.models.calls import CallOutcome
from components.turn import Complexity, Intent, Outcome, Reason, Risk, Route

CODES = {
    "route": get_args(Route),
    "intent": get_args(Intent),
    "complexity": set(get_args(Complexity)) - {"unknown"},
    "risk": set(get_args(Risk)) - {"none"},
    "outcome": get_args(Outcome),
    "reason": get_args(Reason),
    "call": get_args(CallOutcome),
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("kind", CODES)
def test_every_code_has_words(locale: str, kind: str) -> None:
    lacking = [code for code in CODES[kind] if not texts.text_or("", f"desk.{kind}.{code}", locale)]
    assert lacking == []
