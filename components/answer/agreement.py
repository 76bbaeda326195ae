"""Agreement of several answers to one question (self-consistency, Wang et al. 2022)."""

from collections.abc import Sequence

from components.language.identifiers import codes, numbers
from components.language.words import stems
from components.turn import Draft


def most_agreed(drafts: Sequence[Draft]) -> tuple[Draft, float]:
    """Return the draft that agrees most with the others, and its mean agreement (0..1); of equals, the first."""
    means = [
        sum(agreement(draft, other) for other in drafts if other is not draft) / (len(drafts) - 1) for draft in drafts
    ]
    best = max(range(len(drafts)), key=means.__getitem__)
    return drafts[best], means[best]


def agreement(draft: Draft, other: Draft) -> float:
    """Return the share (0..1) of the shorter draft's words that the longer one contains.

    0 if each names numbers or codes that the other lacks, or if only one of them answers; 1 if neither does.
    """
    text, other_text = (" ".join(claim.text for claim in one.claims) for one in (draft, other))
    facts, other_facts = ({*numbers(one), *codes(one)} for one in (text, other_text))
    if not (facts <= other_facts or other_facts <= facts):
        return 0.0
    words, other_words = set(stems(text)), set(stems(other_text))
    fewest = min(len(words), len(other_words))
    return len(words & other_words) / fewest if fewest else float(not (draft.claims or other.claims))
