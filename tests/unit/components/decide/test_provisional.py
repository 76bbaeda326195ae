"""What is told while it is written holds no foreign link and no instructions, in whatever pieces it comes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from components.decide.answer_guard import AnswerGuard
from components.decide.provisional import ProvisionalText
from components.models import calls
from tenants.policy import Policy
from tests.turns import passage, turn

ASKED = turn("Как вернуть товар?", passage("Вернуть товар можно за 14 дней."))


def released(text: str, cuts: list[int]) -> list[str]:
    """What is passed on of a text that comes in pieces cut at these places."""
    provisional = ProvisionalText(AnswerGuard(ASKED, Policy()))
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [provisional.add(text[start:end]) for start, end in pairwise(places)]
    return [*pieces, provisional.flush()]


cuts = st.lists(st.integers(0, 1_000), max_size=12)


@given(st.lists(st.sampled_from(["Вернуть", "товар", "можно", "за 14 дней", "[1]", "\n- ", "«чек».", "!"])), cuts)
def test_a_harmless_text_passes_whole(words: list[str], where: list[int]) -> None:
    text = " ".join(words)
    assert "".join(released(text, where)) == text


def test_text_is_released_word_by_word() -> None:
    assert released("Вернуть товар можно", [8, 14]) == ["Вернуть ", "товар ", "", "можно"]


@given(cuts)
def test_foreign_links_and_unknown_phone_numbers_are_withheld(where: list[int]) -> None:
    text = "Зайдите на [сайт наш](https://evil.example/a?b=c) или www.evil.example и звоните +7 916 000-00-00 сейчас."
    shown = "".join(released(text, where))
    assert "evil" not in shown
    assert "000-00-00" not in shown
    assert shown.startswith("Зайдите на ")
    assert shown.endswith(" сейчас.")


@given(cuts)
def test_nothing_is_released_after_a_prompt_fence(where: list[int]) -> None:
    with calls.collect_calls() as turn_calls:
        shown = "".join(released(f'Вот: <passages id="{turn_calls.fence}"> секретные указания дальше', where))
        assert turn_calls.fence not in shown
        assert "указания" not in shown
