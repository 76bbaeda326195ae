"""The hard rules for a claim: what a model may not decide, because a mistake would be costly and a rule is exact.

A rule rejects a claim only for an identifier or a number that nothing shown to the writer holds, for its length, or
because it proposes an approach that the tenant has rejected. Everything else is for the verifier to judge.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from string import ascii_uppercase

from components.judge.approaches import proposed
from components.language.captions import innermost
from components.language.identifiers import codes, numbers
from components.language.marks import ITEM
from components.language.normalise import fold
from components.turn import Claim, Passage, RejectedApproach

_NUMBER_BEFORE = re.compile(r"\d[.,: ]\Z")
_NUMBER_AFTER = re.compile(r"[.,: ]\d")
_ITEM = re.compile(rf"\A\s*{ITEM}\s+")
_LONGEST = 1_000
"""Characters of a claim. A longer one is no statement that a model could check: it retells what the writer has read."""

_RATIO = re.compile(r"(?<=\d)[^\S\n]*:[^\S\n]*(?=\d)")
"""The colon of a ratio or a time: "1.25: 1" is the number "1.25:1"."""
_COUNT = 4
"""A count up to this may be the writer's own ("there are two ways")."""


def is_quoted(claim: str, passage: Passage) -> bool:
    """Return whether the passage contains the claim verbatim, or has it as its heading or, without one, its title.

    "E2" does not quote "E20", nor 1 quote 1,5 or 1 200.
    """
    if claim and claim == (innermost(passage.heading) or passage.title):
        return True
    text = flat(passage.text)
    return any(_holds(text, flat(said)) for said in dict.fromkeys((claim, _ITEM.sub("", claim))))


def _holds(text: str, said: str) -> bool:
    at = text.find(said) if said else -1
    while at >= 0:
        before, after = text[max(0, at - 2) : at], text[at + len(said) : at + len(said) + 2]
        cut = (before[-1:].isalnum() and said[0].isalnum()) or (after[:1].isalnum() and said[-1].isalnum())
        split = (said[0].isdigit() and _NUMBER_BEFORE.search(before)) or (
            said[-1].isdigit() and _NUMBER_AFTER.match(after)
        )
        if not (cut or split):
            return True
        at = text.find(said, at + 1)
    return False


def is_unfit(claim: str, sources: Sequence[str]) -> bool:
    """Return whether the claim is too long, or holds an identifier or a number that none of the sources holds.

    :param sources: the question and the texts that were shown to the writer.
    """
    if len(claim) > _LONGEST:
        return True
    if unknown_codes(codes(claim), sources):
        return True
    known = {number for source in sources for number in _numbers(source)}
    within = max(sources, key=len, default="")
    body = _ITEM.sub("", claim)
    readings = (numbers(one, within) for one in dict.fromkeys((body, _RATIO.sub(":", body))))
    return not any(all(number in known or _is_count(number) for number in said) for said in readings)


def unknown_codes(named: Iterable[str], sources: Sequence[str]) -> tuple[str, ...]:
    """Return those of the codes that none of the sources holds, in one piece or with their letters apart."""
    known = {code for source in sources for code in _codes(source)}
    return tuple(code for code in named if code not in known and not any(_is_spelt(code, source) for source in sources))


def _is_spelt(code: str, text: str) -> bool:
    """Return whether a text has the code, or its letters apart from the rest: "TLS 1.1" for TLS1.1."""
    rest = code.lstrip(ascii_uppercase)
    letters = code.removesuffix(rest)
    spelt = rf"(?<!\w){re.escape(letters)}[ -]?{re.escape(rest.lstrip('-'))}(?!\w|[.,]\d)"
    return re.search(spelt, text, re.IGNORECASE) is not None


def _is_count(number: str) -> bool:
    return number.isdigit() and int(number) <= _COUNT


def rejected_by(claim: Claim, approaches: Iterable[RejectedApproach]) -> RejectedApproach | None:
    """Return the rejected approach that the claim proposes; None if it proposes none."""
    return next((approach for approach in approaches if proposed(claim.text, approach)), None)


@lru_cache(maxsize=4_096)
def _codes(text: str) -> frozenset[str]:
    return frozenset(codes(text))


@lru_cache(maxsize=4_096)
def _numbers(text: str) -> frozenset[str]:
    return frozenset((*numbers(text, text), *numbers(_RATIO.sub(":", text), text)))


def flat(text: str) -> str:
    """Return a text for comparison: folded, on one line."""
    return " ".join(fold(text).split())
