"""Grading of a turn by an answer key: did it claim to answer, is it right, was the right article offered?

An approximation of human reading: a right answer cites a labelled passage and contains the key's facts. An answer that
cites only passages without a label is unjudged, neither right nor wrong. A cited page matches a labelled passage of the
same document if they share most of their words, because chunk boundaries differ from the key's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from components.turn import SHOWN
from evaluation.cases import AnswerKey, Page, Record
from evaluation.metrics.intervals import Mark, one

Tier: TypeAlias = Literal["answered", "articles", "refused"]
DEPTHS = (1, 3, 10)
OFFERS_READ = 3
_WORDS = re.compile(r"[a-zа-я0-9]+")
_SAME_SHARE = 0.6
_FACT_SHARE = 0.6
_ENOUGH_FACTS = 0.5
_FULL_GRADE = 2
"""The grade of a passage that answers the question; 1 is a part of the answer."""


@dataclass(frozen=True, slots=True)
class GradedTurn:
    """Grade of a turn by the key of its question.

    `recall` is the share of the key's facts in the text. `best` is the best grade among the cited pages, None if none
    of them is labelled. `offered_right` says that one of the offered articles holds a labelled passage.
    """

    tier: Tier
    right: bool
    recall: float
    best: int | None
    offered_right: bool

    @property
    def claimed(self) -> bool:
        """Whether the text was presented to the customer as the answer."""
        return self.tier == "answered"

    @property
    def unjudged(self) -> bool:
        return self.claimed and self.best is None


def grade_turn(record: Record, key: AnswerKey) -> GradedTurn:
    best, recall = _best_and_recall(record.text, record.cited, key)
    claimed = record.outcome in SHOWN
    offered = {offer.doc_id for offer in record.offered[:OFFERS_READ]}
    return GradedTurn(
        tier="answered" if claimed else "articles" if record.offered else "refused",
        right=claimed and _is_right(best, recall, key),
        recall=recall,
        best=best,
        offered_right=any(passage.grade and passage.doc_id in offered for passage in key.passages),
    )


def right_if_claimed(record: Record, key: AnswerKey) -> bool:
    """Whether the turn would be right with its best candidate: its draft, else the passage ranked first."""
    if record.draft:
        return _is_right(*_best_and_recall(record.draft, record.cited, key), key)
    return bool(record.passages) and _is_right(
        *_best_and_recall(record.passages[0].text, record.passages[:1], key), key
    )


def certainty(record: Record) -> tuple[bool, float]:
    """Return the sort key of turns: whether an answer was claimed, and its confidence."""
    likely = record.confidence or (record.passages[0].relevance if record.passages else 0.0)
    return record.outcome in SHOWN, likely


def grade(page: Page, key: AnswerKey) -> int | None:
    """Return the best grade of the labelled passages that match this page; None without a match."""
    grades = [
        passage.grade
        for passage in key.passages
        if passage.doc_id == page.doc_id and _is_same_passage(page.text, passage.text)
    ]
    return max(grades, default=None)


def fact_recall(text: str, facts: Sequence[str]) -> float:
    stems = _stems(text)
    return sum(_contains_fact(stems, _stems(fact)) for fact in facts) / len(facts) if facts else 0.0


def key_marks(record: Record) -> dict[str, Mark]:
    """Return a turn's contribution to the figures of an answer key; empty if its case has no key."""
    key = record.case.key
    if key is None:
        return {}
    turn = grade_turn(record, key)
    marks = {"claimed": one(turn.claimed), **{f"tier:{tier}": one(turn.tier == tier) for tier in get_args(Tier)}}
    if turn.claimed:
        right = one(turn.right)
        marks |= {"answer_precision": right, f"answer_precision:{key.kind}": right, "unjudged": one(turn.unjudged)}
    if key.answerable == "yes":
        useful = one(turn.right or turn.offered_right)
        marks |= {"answer_recall": one(turn.right), "right_or_offered": useful}
        marks[f"right_or_offered:{turn.tier}"] = useful
    return marks | _ranking_marks(record, key)


def _ranking_marks(record: Record, key: AnswerKey) -> dict[str, Mark]:
    """Whether a labelled passage is among the first that were found, of questions that have one."""
    if not any(passage.grade for passage in key.passages):
        return {}
    grades = [grade(passage, key) or 0 for passage in record.passages[: max(DEPTHS)]]
    return {f"labelled@{depth}": one(any(grades[:depth])) for depth in DEPTHS}


def _best_and_recall(text: str, pages: Sequence[Page], key: AnswerKey) -> tuple[int | None, float]:
    grades = [page_grade for page in pages if (page_grade := grade(page, key)) is not None]
    return max(grades, default=None), fact_recall(text, key.facts)


def _is_right(best: int | None, recall: float, key: AnswerKey) -> bool:
    if key.answerable == "no" or not best:
        return False
    return not key.facts or recall >= _ENOUGH_FACTS or (best == _FULL_GRADE and recall > 0)


def _is_same_passage(page: str, passage: str) -> bool:
    page_words, passage_words_ = _words(page), _words(passage)
    return bool(page_words and passage_words_) and len(page_words & passage_words_) >= _SAME_SHARE * min(
        len(page_words), len(passage_words_)
    )


def _contains_fact(stems: frozenset[str], fact: frozenset[str]) -> bool:
    numbers = {stem for stem in fact if stem.isdigit()}
    return numbers <= stems and len(fact & stems) >= _FACT_SHARE * len(fact)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(text.lower().replace("ё", "е")))


def _stems(text: str) -> frozenset[str]:
    """Return stems, so that endings do not matter; numbers are kept whole."""
    return frozenset(
        word if word.isdigit() or len(word) < 5 else word[: max(4, len(word) - 2)][:7] for word in _words(text)
    )
