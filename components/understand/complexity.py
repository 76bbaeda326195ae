"""Complexity of a question. It affects only effort and model tier: every question takes the same path."""

import re

from haystack import component

from components.language.identifiers import codes
from components.language.normalise import clean, fold
from components.language.words import words
from components.turn import Complexity

_SENTENCE_END = re.compile(r"[.!?;\n]+(?:\s|$)")
# Words that join two questions, compare, or set conditions.
_JOINS = re.compile(
    r"\b(?:а также|и как|и сколько|и почему|и где|и когда|и что|а если|сравни\w*|отлич\w+|разниц\w+|лучше|"
    r"and how|and what|and why|and when|and where|as well as|compare\w*|differen\w+|versus|vs|better|what if)\b"
)
_CONDITION = re.compile(r"\b(?:если|хотя|несмотря|кроме|but|if|unless|although|despite|except|while)\b")


@component
class ComplexityClassifier:
    """Marks a question `simple`, `complex` or `unknown` by rules that can be read below.

    :param simple_words: most content words of a simple question.
    :param complex_words: least content words of a complex one.
    """

    def __init__(self, simple_words: int = 8, complex_words: int = 25) -> None:
        self.simple_words = simple_words
        self.complex_words = complex_words

    @component.output_types(query=str, complexity=Complexity)
    def run(self, query: str, question: str = "") -> dict[str, str]:
        """Return the `complexity` of the query, and the `query` unchanged, so that this step fits into the loop.

        :param question: the customer's words, which decide if they are given.
        """
        return {"query": query, "complexity": self._classify(clean(question or query))}

    def _classify(self, question: str) -> Complexity:
        content = sum(not word.stop for word in words(question))
        if content == 0:
            return "unknown"
        folded = fold(question)
        signs = (
            question.count("?") > 1,
            len([part for part in _SENTENCE_END.split(question) if part.strip()]) > 2,
            bool(_JOINS.search(folded)),
            bool(_CONDITION.search(folded)) and content > self.simple_words,
            len(codes(question)) > 1,
        )
        if content >= self.complex_words or sum(signs) > 1:
            return "complex"
        if content <= self.simple_words and not any(signs):
            return "simple"
        return "complex" if any(signs) else "unknown"
