"""Complexity of a question. It affects only effort and model tier: every question takes the same path."""

from haystack import component

from components.language.normalise import clean
from components.language.words import words
from components.turn import Complexity
from components.understand.parts import parts_of


@component
class ComplexityClassifier:
    """Mark a question `simple`, `complex` or `unknown`. It is complex if it is long, asks several things or compares.

    :param simple_words: maximum number of content words of a simple question.
    :param complex_words: minimum number of content words of a complex question.
    """

    def __init__(self, simple_words: int = 8, complex_words: int = 25) -> None:
        self.simple_words = simple_words
        self.complex_words = complex_words

    @component.output_types(query=str, complexity=Complexity)
    def run(self, query: str, question: str = "") -> dict[str, str]:
        """Return the `complexity` of the query, and the `query` unchanged, so that this step fits into the loop.

        :param question: the customer's words; if set, these decide.
        """
        return {"query": query, "complexity": self._classify(clean(question or query))}

    def _classify(self, question: str) -> Complexity:
        content = sum(not word.stop for word in words(question))
        if content == 0:
            return "unknown"
        if content >= self.complex_words or parts_of(question):
            return "complex"
        return "simple" if content <= self.simple_words else "unknown"
