"""Closed chats with a similar question, to reuse a colleague's reply."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from components.language.words import words
from tenants.desk import inbox

MOST = 5
_STEMS = 8
_CANDIDATES = 300
_LEAST_SHARED = 0.34
"""Minimum share of matching words, weighted by their rarity among the candidates, for a similar question."""


@dataclass(frozen=True, slots=True)
class SimilarChat:
    """Closed chat: the customer's question, and an operator's last reply."""

    chat_id: str
    question: str
    reply: str


def similar(question: str, *, but: str) -> tuple[SimilarChat, ...]:
    """Return the closed chats nearest to a question, nearest first."""
    asked = _stems(question)
    candidates = [one for one in inbox.asked_before(asked[:_STEMS], limit=_CANDIDATES) if one.chat_id != but]
    spread = Counter(stem for one in candidates for stem in set(_stems(one.text)))
    rarity = {stem: log(1 + len(candidates) / (1 + spread[stem])) for stem in asked}
    whole = sum(rarity.values())
    best: dict[str, tuple[float, str]] = {}
    for one in candidates:
        share = sum(rarity[stem] for stem in set(_stems(one.text)) & rarity.keys()) / whole if whole else 0.0
        if share >= _LEAST_SHARED and share > best.get(one.chat_id, (0.0, ""))[0]:
            best[one.chat_id] = (share, one.text)
    nearest = sorted(best, key=lambda chat_id: -best[chat_id][0])[: 2 * MOST]
    replies = inbox.last_replies(nearest)
    return tuple(SimilarChat(one, best[one][1], replies[one]) for one in nearest if one in replies)[:MOST]


def _stems(text: str) -> Sequence[str]:
    found = dict.fromkeys(word.stem for word in words(text) if not word.stop and len(word.stem) > 2)
    return sorted(found, key=len, reverse=True)
