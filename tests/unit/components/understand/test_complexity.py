"""Complexity by rules that a reader can check."""

import pytest
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.understand.complexity import ComplexityClassifier


def classified(question: str) -> str:
    return ComplexityClassifier().run(query=question)["complexity"]


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
    assert classified(question) == complexity


def test_a_long_message_is_complex() -> None:
    words = " ".join(f"слово{chr(0x430 + n)}" for n in range(30))
    assert classified(words) == "complex"


@given(st.text(max_size=500))
def test_the_query_passes_unchanged(text: str) -> None:
    assert ComplexityClassifier().run(query=text)["query"] == text


def test_the_words_of_the_customer_decide() -> None:
    outputs = ComplexityClassifier().run(query="доставка", question="Чем отличается доставка от самовывоза?")
    assert outputs == {"query": "доставка", "complexity": "complex"}


def test_it_survives_a_round_trip_through_yaml() -> None:
    pipeline = Pipeline()
    pipeline.add_component("complexity", ComplexityClassifier(simple_words=5))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"]).get_component("complexity")
    assert isinstance(again, ComplexityClassifier)
    assert (again.simple_words, again.complex_words) == (5, 25)
