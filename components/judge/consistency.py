"""Do two answers to one question agree in facts and words? (self-consistency, Wang et al. 2022)"""

from typing import Protocol

from components.language.identifiers import codes, numbers
from components.language.words import stems
from components.turn import Draft, Turn


class Writer(Protocol):
    """Who writes answers: the answering steps of a pipeline."""

    def run(self, turn: Turn) -> dict[str, Turn]:
        """The turn with a draft."""


def agreement(draft: Draft, other_draft: Draft) -> float:
    """The share of the shorter draft's words that the longer one contains, 0..1.

    0 when each names numbers or codes that the other lacks, or when either has no words.
    """
    text, other_text = _plain_text(draft), _plain_text(other_draft)
    facts, facts_again = _facts(text), _facts(other_text)
    if not (facts <= facts_again or facts_again <= facts):
        return 0.0
    words, words_again = set(stems(text)), set(stems(other_text))
    fewest = min(len(words), len(words_again))
    return len(words & words_again) / fewest if fewest else 0.0


def _plain_text(draft: Draft) -> str:
    """Without the marks [N], which are numbers of the prompt."""
    return "\n".join(claim.text for claim in draft.claims)


def _facts(text: str) -> set[str]:
    return {*numbers(text), *codes(text)}
