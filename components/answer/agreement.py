"""Do two answers to one question agree in facts and words? (self-consistency, Wang et al. 2022)"""

from components.language.identifiers import codes, numbers
from components.language.words import stems
from components.turn import Draft


def agreement(draft: Draft, other: Draft) -> float:
    """Return the share (0..1) of the shorter draft's words that the longer one contains.

    0 if each names numbers or codes that the other lacks, or if either has no words.
    """
    text, other_text = (" ".join(claim.text for claim in one.claims) for one in (draft, other))
    facts, other_facts = ({*numbers(one), *codes(one)} for one in (text, other_text))
    if not (facts <= other_facts or other_facts <= facts):
        return 0.0
    words, other_words = set(stems(text)), set(stems(other_text))
    fewest = min(len(words), len(other_words))
    return len(words & other_words) / fewest if fewest else 0.0
