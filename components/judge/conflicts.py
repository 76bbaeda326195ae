"""Conflicts between documents that answer a question differently: which one to trust, and what the other says."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import get_args

from components.judge.analysis import Sentence, analyse
from components.judge.contradictions import CARRIERS, AnswerSentence, contradiction, same_subject
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
# Of the relevance of a superseded passage, what its successor's must have.
_SUCCEEDS = 0.4
_ASKS_FOR_CODE = frozenset("код кода кодом промокод промокода артикул номер номера code number promo sku".split())


def conflicts(turn: Turn, depth: int, min_relevance: float) -> Iterator[Conflict]:
    """The conflicts among the best accepted passages, at most one per pair, the better match first.

    The sentences compared are those that answer the question; `components/judge/contradictions.py` says when two of
    them contradict each other. The trusted one is that of the document in force, then the more trusted, then the newer;
    where all are equal, the better match.

    :param depth: accepted passages compared.
    :param min_relevance: of a passage to be compared.
    """
    judged = turn.evidence.relevance_by_chunk
    passages = [
        passage
        for passage in turn.evidence.relevant_passages()[:depth]
        if judged.get(passage.chunk_id, 0.0) >= min_relevance
    ]
    pairs = [
        (passage, other)
        for passage, other in combinations(passages, 2)
        if passage.doc_id != other.doc_id and passage.lang == other.lang and same_subject(passage, other)
    ]
    if not pairs:
        return
    question = prepare(turn.query)
    asks_for_code = not question.codes and any(fold(word.text) in _ASKS_FOR_CODE for word in words(turn.query.search))
    concerned = {passage.chunk_id: passage for pair in pairs for passage in pair}
    answers = {chunk_id: _answers(question, passage) for chunk_id, passage in concerned.items()}
    for first, second in pairs:
        for left, right in product(answers[first.chunk_id], answers[second.chunk_id]):
            kind = contradiction(left, right, asks_for_code=asks_for_code)
            if kind is not None:
                trusted, other = sorted((left, right), key=_trust, reverse=True)
                yield Conflict(kind, _statement(trusted), _statement(other))
                break


def with_conflicts(evidence: Evidence, conflicts: tuple[Conflict, ...]) -> Evidence:
    """The evidence with its conflicts; the trusted passage of each takes the higher rank of the two.

    So the answer is quoted from it.
    """
    places = dict(evidence.rank_scores)
    for conflict in conflicts:
        trusted, other = conflict.trusted.chunk_id, conflict.other.chunk_id
        worse, better = sorted((places[trusted], places[other]))
        places[trusted], places[other] = better + _AHEAD, worse
    return replace(evidence, conflicts=conflicts).reordered(places)


def with_successors(evidence: Evidence, successors: Mapping[str, str]) -> Evidence:
    """The evidence with the best accepted passage of a newer document in a better place than those that it supersedes.

    A newer document of several sections divides among them what the older one has in one, so its best passage can look
    less relevant; one that is much less relevant does not answer in its stead.

    :param successors: by superseded document, the one that supersedes it.
    """
    places = dict(evidence.rank_scores)
    accepted = evidence.relevant_passages()
    for passage in accepted:
        least = _SUCCEEDS * evidence.relevance_by_chunk.get(passage.chunk_id, 0.0)
        newer = frozenset(_newer(passage.doc_id, successors))
        candidates = [
            other.chunk_id
            for other in accepted
            if other.doc_id in newer
            and other.status == "active"
            and evidence.relevance_by_chunk.get(other.chunk_id, 0.0) >= least
        ]
        if candidates:
            best = max(candidates, key=lambda chunk_id: places[chunk_id])
            places[best] = max(places[best], places[passage.chunk_id])
            # Far behind: among near equals the words of their sentences would decide.
            places[passage.chunk_id] = 0.0
    return evidence.reordered(places)


def _newer(doc_id: str, successors: Mapping[str, str]) -> Iterator[str]:
    """The documents that supersede this one, one after another, however they may be tied in a circle."""
    seen = {doc_id}
    while (doc_id := successors.get(doc_id, "")) and doc_id not in seen:
        seen.add(doc_id)
        yield doc_id


def _answers(question: Question, passage: Passage) -> list[AnswerSentence]:
    """The passage's sentences that answer the question best."""
    analysis = analyse(passage)
    telling = {stem: weight for stem, weight in question.weights.items() if stem not in CARRIERS}
    total = sum(telling.values()) or 1.0
    weights = {stem: weight / total for stem, weight in telling.items()}
    kin = {stem: relatives(stem, analysis.families) for stem in weights if stem not in analysis.stems}
    candidates: list[tuple[float, Sentence, frozenset[str], float]] = []
    for sentence in analysis.sentences:
        matched = [stem for stem in weights if stem in sentence.places or kin.get(stem, _NONE) & sentence.places.keys()]
        itself = sum(weights[stem] for stem in matched)
        if itself < _ANSWERS_ITSELF:
            continue
        question_stems = frozenset(matched).union(
            stem for stem in weights if stem in analysis.head or kin.get(stem, _NONE) & analysis.head
        )
        share = sum(weights[stem] for stem in question_stems)
        if share >= _ANSWERS:
            candidates.append((share, sentence, question_stems, itself))
    candidates.sort(key=lambda candidate: -candidate[0])
    statements = []
    for _, sentence, question_stems, itself in candidates[:_CANDIDATES]:
        text = passage.text[sentence.start : sentence.end]
        if not text.startswith(_NOT_PROSE) and not text.endswith(("?", ":")):
            statements.append(AnswerSentence(passage, sentence, question_stems, itself))
    return statements


def _trust(sentence: AnswerSentence) -> tuple[bool, int, str]:
    passage = sentence.passage
    return passage.status == "active", _TRUST[passage.trust], passage.updated_at


def _statement(sentence: AnswerSentence) -> Statement:
    return Statement(sentence.passage.chunk_id, (sentence.sentence.start, sentence.sentence.end))
