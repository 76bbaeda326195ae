"""Does a passage support a claim? Numbers, codes, names and negation must agree, and its words must occur."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from components.judge.analysis import analyse
from components.judge.coverage import share_said
from components.judge.protocol import ClaimVerdict
from components.language.identifiers import codes, numbers
from components.language.marks import ITEM
from components.language.normalise import fold
from components.language.relatives import relatives
from components.language.sentences import sentence_spans
from components.language.words import Word, stems, words
from components.turn import ClaimStatus, Passage

RANK: Mapping[ClaimStatus, int] = MappingProxyType({"supported": 2, "partially_supported": 1, "unsupported": 0})
"""The better a status, the higher."""

_SUPPORTED = 0.75
_PARTIAL = 0.5
_DERIVED_CREDIT = 0.7
_WINDOW = 3
NEGATIONS = frozenset("не нет ни без нельзя невозможно никогда никто ничего not no never none without cannot".split())
_CUT_BEFORE = re.compile(r"(?:\w|\d[.,: ])\Z")
_CUT_AFTER = re.compile(r"\w|[.,: ]\d")
_ITEM = re.compile(rf"{ITEM}\s+")
_WORD = re.compile(r"[\w']+")


def check_cited(claim: str, passages: Iterable[Passage], question: str = "") -> ClaimVerdict:
    """The verdict of the passage that supports the claim best; a claim that cites none is unsupported."""
    verdicts = (check(claim, passage, question) for passage in passages)
    return max(
        verdicts,
        key=lambda verdict: (RANK[verdict.status], verdict.score),
        default=ClaimVerdict("unsupported", 0.0, ""),
    )


def check(claim: str, passage: Passage, question: str = "") -> ClaimVerdict:
    """A complete quotation that is not separated from its negation is supported. Otherwise at least three quarters of
    the claim's content words must stand within three neighbouring sentences under their heading, every number and code
    of the claim must be in the passage, every name too, and both must be negated or neither. Of a claim that only says
    again what was asked, each word must, or a related one: small models say yes to any question.
    """
    if _quoted(claim, passage):
        return ClaimVerdict("supported", 1.0, claim)
    claim_words = words(claim)
    content = {word.stem for word in claim_words if not word.stop and fold(word.text) not in NEGATIONS}
    if not content:
        return ClaimVerdict("unsupported", 0.0, "")
    score, quote = _best_window(content, passage)
    if not _facts_agree(claim, claim_words, passage) or negated(claim) != negated(quote):
        return ClaimVerdict("unsupported", min(score, _PARTIAL), quote)
    if content <= frozenset(stems(question)):
        said = analyse(passage).head.union(stems(quote))
        if share_said(dict.fromkeys(content, 1.0), said) < 1:
            return ClaimVerdict("unsupported", min(score, _PARTIAL), quote)
    return ClaimVerdict(_status(score), score, quote)


def _quoted(claim: str, passage: Passage) -> bool:
    """Whether one sentence holds the claim's very words: "E2" is no quotation from "E20", nor 1 from 1,5 or 1 200."""
    flat_claim = _flat(claim)
    if not flat_claim:
        return False
    for sentence in analyse(passage).sentences:
        text = passage.text[sentence.start : sentence.end]
        if len(text) < len(flat_claim) or not _contains_whole(_flat(text), flat_claim):
            continue
        if negated(text) == negated(claim):
            return True
        # A list item is one unit of several sentences: the negation of one says nothing about another.
        item = _ITEM.sub("", text, count=1)
        parts = (item[start:end] for start, end in sentence_spans(item))
        if any(_contains_whole(_flat(part), flat_claim) and negated(part) == negated(claim) for part in parts):
            return True
    return False


def _contains_whole(text: str, phrase: str) -> bool:
    """Whether `text` contains the phrase without splitting a word or a number."""
    at = text.find(phrase)
    while at >= 0:
        if not (_CUT_BEFORE.search(text[:at]) or _CUT_AFTER.match(text, at + len(phrase))):
            return True
        at = text.find(phrase, at + 1)
    return False


def _status(score: float) -> ClaimStatus:
    if score >= _SUPPORTED:
        return "supported"
    return "partially_supported" if score >= _PARTIAL else "unsupported"


def _best_window(content: set[str], passage: Passage) -> tuple[float, str]:
    analysis = analyse(passage)
    kin = {stem: relatives(stem, analysis.families) for stem in content}
    best, quote = 0.0, ""
    for size in range(1, _WINDOW + 1):
        for first in range(max(0, len(analysis.sentences) - size + 1)):
            window = analysis.sentences[first : first + size]
            present = analysis.head.union(*(sentence.places for sentence in window))
            score = sum(
                1.0 if stem in present else _DERIVED_CREDIT if kin[stem] & present else 0.0 for stem in content
            ) / len(content)
            if score > best + 0.05 * (size > 1):
                best, quote = score, passage.text[window[0].start : window[-1].end]
    return best, quote


def _facts_agree(claim: str, claim_words: list[Word], passage: Passage) -> bool:
    head = f"{passage.title}\n{passage.heading}\n"
    full_text = head + passage.text
    if not set(codes(claim)) <= analyse(passage).codes or not set(numbers(claim, full_text)) <= _numbers(full_text):
        return False
    passage_stems = analyse(passage).stems
    names = {word.stem for word in claim_words if word.start > 0 and word.text[0].isupper() and not word.stop}
    return all(stem in passage_stems or relatives(stem, analyse(passage).families) for stem in names)


@lru_cache(maxsize=2_000)
def _numbers(text: str) -> frozenset[str]:
    return frozenset(numbers(text))


def negated(text: str) -> bool:
    """Whether `text` contains a negation."""
    text_words = _WORD.findall(fold(text).replace("’", "'"))
    return any(word in NEGATIONS or word.endswith("n't") for word in text_words)


def _flat(text: str) -> str:
    return " ".join(fold(text).split())
