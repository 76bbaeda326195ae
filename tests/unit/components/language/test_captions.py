"""Captions that announce a solution."""

import pytest

from components.language.captions import is_resolution


@pytest.mark.parametrize(
    "caption", ["Ответ", "Решение", "РЕШЕНИЕ:", "Answer", "RESOLVING THE PROBLEM", "REMEDIATION/FIXES"]
)
def test_a_solution(caption: str) -> None:
    assert is_resolution(caption)


@pytest.mark.parametrize("caption", ["Ответственность", "Решение о возврате", "Answering machines", "Question", ""])
def test_no_solution(caption: str) -> None:
    assert not is_resolution(caption)
