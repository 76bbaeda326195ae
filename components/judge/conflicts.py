"""Two documents that answer one question differently: which one to go by, and what the other one says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import get_args

from haystack import component

from components.judge.analysis import Sentence, analyse
from components.judge.contradictions import CARRIERS, Said, contradiction, same_subject
from components.judge.coverage import Question, prepare
from components.language.normalise import fold
from components.language.relatives import relatives
from components.language.words import words
from components.turn import Conflict, Evidence, Passage, Statement, Trust, Turn

_TRUST = {trust: -place for place, trust in enumerate(get_args(Trust))}
_NOT_PROSE = ("|", "#", "`", "~")
_NONE: frozenset[str] = frozenset()
# Shares of the question's weight without `CARRIERS`: in the sentence and its heading, in the sentence alone.
_ANSWERS = 0.5
_ANSWERS_ITSELF = 0.3
_CANDIDATES = 3
# What puts the trusted one of two equal places first.
_AHEAD = 1e-6
_ASKS_FOR_CODE = frozenset("код кода кодом промокод промокода артикул номер номера code number promo sku".split())


@component
class ConflictFinder:
    """Finds kept passages of different documents that answer the question differently, and puts the trusted one first.

    The sentences compared are those that answer the question; `components/judge/contradictions.py` says when two of
    them contradict each other. The trusted one is that of the document in force, then the more trusted, then the newer;
    where all are equal, the better match. It takes the better place of the two, so that the answer is quoted from it.

    :param depth: kept passages compared, best first.
    :param least_relevance: of a passage, so that it is compared.
    """

    def __init__(self, depth: int = 6, least_relevance: float = 0.5) -> None:
        self.depth = depth
        self.least_relevance = least_relevance

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with the conflicts of its evidence, and its kept passages in an order that heeds them."""
        evidence = turn.evidence
        passages = [
            passage
            for passage in evidence.usable()[: self.depth]
            if evidence.judged.get(passage.chunk_id, 0.0) >= self.least_relevance
        ]
        several = len({passage.doc_id for passage in passages}) > 1
        conflicts = tuple(_conflicts(turn, passages)) if several else ()
        if not (conflicts or evidence.conflicts):
            return {"turn": turn}
        return {"turn": replace(turn, evidence=_reordered(replace(evidence, conflicts=conflicts)))}


def _conflicts(turn: Turn, passages: Sequence[Passage]) -> Iterator[Conflict]:
    """At most one conflict between two passages, the better match first."""
    question = prepare(turn.query)
    asks_for_code = not question.codes and any(fold(word.text) in _ASKS_FOR_CODE for word in words(turn.query.search))
    said = [(passage, _answers(question, passage)) for passage in passages]
    for (one, ones), (two, twos) in combinations(said, 2):
        if one.doc_id == two.doc_id or one.lang != two.lang or not same_subject(one, two):
            continue
        for left, right in ((left, right) for left in ones for right in twos):
            kind = contradiction(left, right, asks_for_code=asks_for_code)
            if kind is not None:
                trusted, other = sorted((left, right), key=_trust, reverse=True)
                yield Conflict(kind, _statement(trusted), _statement(other))
                break


def _answers(question: Question, passage: Passage) -> list[Said]:
    """The passage's sentences that answer the question best."""
    analysis = analyse(passage)
    telling = {stem: weight for stem, weight in question.weights.items() if stem not in CARRIERS}
    total = sum(telling.values()) or 1.0
    weights = {stem: weight / total for stem, weight in telling.items()}
    kin = {stem: relatives(stem, analysis.families) for stem in weights if stem not in analysis.stems}
    found: list[tuple[float, Sentence, frozenset[str], float]] = []
    for sentence in analysis.sentences:
        held = [stem for stem in weights if stem in sentence.places or kin.get(stem, _NONE) & sentence.places.keys()]
        itself = sum(weights[stem] for stem in held)
        if itself < _ANSWERS_ITSELF:
            continue
        asked = frozenset(held).union(
            stem for stem in weights if stem in analysis.head or kin.get(stem, _NONE) & analysis.head
        )
        share = sum(weights[stem] for stem in asked)
        if share >= _ANSWERS:
            found.append((share, sentence, asked, itself))
    found.sort(key=lambda one: -one[0])
    said = []
    for _, sentence, asked, itself in found[:_CANDIDATES]:
        text = passage.text[sentence.start : sentence.end]
        if not text.startswith(_NOT_PROSE) and not text.endswith(("?", ":")):
            said.append(Said(passage, sentence, asked, itself))
    return said


def _trust(said: Said) -> tuple[bool, int, str]:
    passage = said.passage
    return passage.status == "active", _TRUST[passage.trust], passage.updated_at


def _statement(said: Said) -> Statement:
    return Statement(said.passage.chunk_id, (said.sentence.start, said.sentence.end))


def _reordered(evidence: Evidence) -> Evidence:
    """The evidence with the trusted passage of each conflict in the better place of the two."""
    places = dict(evidence.places)
    for conflict in evidence.conflicts:
        trusted, other = conflict.trusted.chunk_id, conflict.other.chunk_id
        worse, better = sorted((places[trusted], places[other]))
        places[trusted], places[other] = better + _AHEAD, worse
    kept = tuple(sorted(evidence.kept, key=lambda chunk_id: -places[chunk_id]))
    return replace(evidence, places=places, kept=kept)
