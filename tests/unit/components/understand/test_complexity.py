"""Complexity by rules that a reader can check."""

from components.understand.complexity import ComplexityClassifier


def classified(question: str) -> str:
    return ComplexityClassifier().run(query=question)["complexity"]


def test_questions_are_classified_by_complexity() -> None:
    for question, complexity in (
        ("E20", "simple"),
        ("Сколько стоит доставка?", "simple"),
        ("How do I reset my password?", "simple"),
        ("Чем отличается рассрочка от кредита?", "complex"),
        ("Сколько стоит установка? А доставка входит?", "complex"),
        ("E20 и E25 — что делать?", "complex"),
        ("when are you open and is there parking", "complex"),
        ("а если банк откажет", "simple"),
        ("What is the difference between the two plans, and how do I switch?", "complex"),
        ("и как?", "unknown"),
        ("???", "unknown"),
    ):
        assert classified(question) == complexity


def test_the_words_of_the_customer_decide() -> None:
    outputs = ComplexityClassifier().run(query="доставка", question="Чем отличается доставка от самовывоза?")
    assert outputs == {"query": "доставка", "complexity": "complex"}
