"""Configured patterns: matching takes bounded time, and unsupported patterns are refused."""

from time import monotonic

import pytest

from tenants.core.patterns import compiled

HOSTILE = [r"\w{1,40}" * 5 + "!", r"(a+)+$", r"(\w|\d)*№", ".*" * 40 + "!", r"(?:.{1,50}){9}!", r"([а-я]+\s?)+$"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_backtracks(pattern: str) -> None:
    started = monotonic()
    compiled(pattern).search("слово" * 800 + "a" * 2_000)
    assert monotonic() - started < 20


def test_a_word_may_be_russian() -> None:
    for pattern, text, match in (
        (r"\b\d{6}\b", "Где заказ 123456?", "123456"),
        (r"№ ?\d+", "заказ № 42", "№ 42"),
        (r"заказ \w+", "Где ЗАКАЗ Ёлка7?", "ЗАКАЗ Ёлка7"),
        (r"[\w-]+@[\w.]+", "пишите на вася-1@shop.example", "вася-1@shop.example"),
        (r"\W\d", "а1 б", None),
        (r"[]\w]+", "]я", "]я"),
        (r"\\w", r"a\w", r"\w"),
        (r"(?:AB|ВГ)-\d{3}", "код вг-123", "вг-123"),
    ):
        results = compiled(pattern).search(text)
        assert (results and results.group()) == match


@pytest.mark.parametrize(
    "pattern", ["[", r"(?=a)b", r"(?<!\w)b", r"(a)\1", r"\w{1,1000}", r"(\w{50}){50}", r"\p{Nothing}"]
)
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        compiled(pattern)
