"""Complexity by rules that a reader can check."""

import pytest
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.turn import Turn
from components.understand.complexity import ComplexityClassifier


@pytest.mark.parametrize(
    ("question", "complexity"),
    [
        ("E20", "simple"),
        ("Сколько стоит доставка?", "simple"),
        ("How do I reset my password?", "simple"),
        ("Чем отличается рассрочка от кредита?", "complex"),
        ("Сколько стоит установка? А доставка входит?", "complex"),
        ("E20 и E25 — что делать?", "complex"),
        ("What is the difference between the two plans, and how do I switch?", "complex"),
        ("и как?", "unknown"),
        ("???", "unknown"),
    ],
)
def test_questions_are_classified_by_complexity(question: str, complexity: str) -> None:
    assert ComplexityClassifier().run(Turn("t", question))["turn"].complexity == complexity


def test_a_long_message_is_complex() -> None:
    words = " ".join(f"слово{chr(0x430 + n)}" for n in range(30))
    assert ComplexityClassifier().run(Turn("t", words))["turn"].complexity == "complex"


@given(st.text(max_size=500))
def test_only_the_complexity_changes(text: str) -> None:
    before = Turn("t", text)
    after = ComplexityClassifier().run(before)["turn"]
    assert (after.question, after.intent, after.outcome) == (before.question, before.intent, before.outcome)


def test_it_survives_a_round_trip_through_yaml() -> None:
    pipeline = Pipeline()
    pipeline.add_component("complexity", ComplexityClassifier(simple_words=5))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"]).get_component("complexity")
    assert isinstance(again, ComplexityClassifier)
    assert (again.simple_words, again.complex_words) == (5, 25)
