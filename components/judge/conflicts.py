"""Two documents that answer one question differently: which one to go by, and what the other one says."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import get_args

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


def conflicts(turn: Turn, depth: int, least_relevance: float) -> Iterator[Conflict]:
    """The conflicts among the best kept passages, at most one between two passages, the better match first.

    The sentences compared are those that answer the question; `components/judge/contradictions.py` says when two of
    them contradict each other. The trusted one is that of the document in force, then the more trusted, then the newer;
    where all are equal, the better match.

    :param depth: kept passages compared.
    :param least_relevance: of a passage, so that it is compared.
    """
    judged = turn.evidence.judged
    passages = [one for one in turn.evidence.usable()[:depth] if judged.get(one.chunk_id, 0.0) >= least_relevance]
    pairs = [
        (one, two)
        for one, two in combinations(passages, 2)
        if one.doc_id != two.doc_id and one.lang == two.lang and same_subject(one, two)
    ]
    if not pairs:
        return
    question = prepare(turn.query)
    asks_for_code = not question.codes and any(fold(word.text) in _ASKS_FOR_CODE for word in words(turn.query.search))
    concerned = {passage.chunk_id: passage for pair in pairs for passage in pair}
    answers = {chunk_id: _answers(question, passage) for chunk_id, passage in concerned.items()}
    for one, two in pairs:
        for left, right in product(answers[one.chunk_id], answers[two.chunk_id]):
            kind = contradiction(left, right, asks_for_code=asks_for_code)
            if kind is not None:
                trusted, other = sorted((left, right), key=_trust, reverse=True)
                yield Conflict(kind, _statement(trusted), _statement(other))
                break


def heeding(evidence: Evidence, found: tuple[Conflict, ...]) -> Evidence:
    """The evidence with its conflicts, the trusted passage of each in the better place of the two.

    So the answer is quoted from it.
    """
    places = dict(evidence.places)
    for conflict in found:
        trusted, other = conflict.trusted.chunk_id, conflict.other.chunk_id
        worse, better = sorted((places[trusted], places[other]))
        places[trusted], places[other] = better + _AHEAD, worse
    kept = tuple(sorted(evidence.kept, key=lambda chunk_id: -places[chunk_id]))
    return replace(evidence, places=places, kept=kept, conflicts=found)


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
