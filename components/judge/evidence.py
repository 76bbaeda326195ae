"""The features of a passage that the judge weighs, each in 0..1 and shown in the trace.

Training (`evaluation/fit_judge.py`) and serving measure by this code alone.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log1p

import numpy as np
import numpy.typing as npt

from components.judge.analysis import analyse as taken_apart
from components.judge.answer_form import form_share
from components.judge.answer_kind import answers_kind
from components.judge.coverage import with_raised_codes
from components.judge.named import names_in, rare_names
from components.judge.place import is_looked_up, shares_language, stands_beside
from components.language.question_kind import QuestionKind, kind_of
from components.language.relatives import Families, families, relatives
from components.language.words import all_words, analyse
from components.turn import Passage, Query

Numbers = npt.NDArray[np.float64]

COSINE = "cosine"
"""In `Passage.scores`, from the search by meaning."""

REQUIRED = ("kind", "place", "names")
"""What a shown answer must have anyway (`components/judge/requirements.py`)."""

EVIDENCE = (COSINE, "words", "saturation", "length", "action", "about", "form", *REQUIRED)
"""By column: the cosine of question and passage; the share of the question's weight whose words are there, function
words included, because "как" and "можно" in a heading tell a guide from a definition, unless no help centre that was
fitted on has them ("скажите", "до скольки"); the same by how often they occur (BM25); the length; whether title or
heading name the action that the question asks for; the share of title and heading that the question speaks of, low
where they are about something else; and the form that the kind of question demands.
"""

_SIMILAR: Mapping[str, float] = {COSINE: 1.0, "words": 0.1}
"""What makes a passage similar to the question, whether or not it answers. The ratio was chosen on Yandex Cloud and
Microsoft."""

_K1, _B = 1.2, 0.75
_DERIVED_CREDIT = 0.6
_CODES_TO_WORDS = 1.5
_RARE = 4.0
"""Weight of a rare content word among some thousand passages, for which function words are weighed."""
_NO_ACTION, _NO_HEAD = 0.4, 0.3
"""About the mean of help centres, for questions without an infinitive and passages without title and heading."""
_KIND_UNKNOWN = 0.6
"""The same for passages in another language than the question."""
_LONG = 6.0
_FILE_NAME = re.compile(r"[\w.-]*[\d_.][\w.-]*")
_INFINITIVE = re.compile(r"[а-яё]{2,}(?<!ос)(?:ть|ти|чь|ться|тись)$")
_ENGLISH_ACTION = re.compile(r"\b(?:to|i|we|you)\s+([a-z]{3,})\b")


@dataclass(frozen=True, slots=True)
class _Question:
    weights: Mapping[str, float]
    families: Families
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A passage by its words: how often each stem occurs, how many there are, and the content stems of its head."""

    counts: Mapping[str, int]
    length: int
    head: frozenset[str]
    head_families: Families


def measure(query: Query, passages: Sequence[Passage], function_words: Mapping[str, float]) -> Numbers:
    """The evidence for each passage, a row for each, a column for each of `EVIDENCE`.

    :param function_words: weights of the words that `query.weights` leaves out.
    """
    question, kind = _read_question(query, function_words), kind_of(query.search)
    names = rare_names(query)
    readings = [_read(titles(passage), passage.text) for passage in passages]
    mean_length = sum(reading.length for reading in readings) / max(1, len(readings))
    total = sum(question.weights.values()) or 1.0
    rows = np.zeros((len(passages), len(EVIDENCE)))
    for row, passage, reading in zip(rows, passages, readings, strict=True):
        counts = reading.counts
        if query.codes:
            counts = {**dict.fromkeys(map(str.lower, taken_apart(passage).codes), 1), **counts}
        shared = [stem for stem in question.weights if stem in counts]
        fullness = _K1 * (1 - _B + _B * reading.length / (mean_length or 1.0))
        row[:] = (
            passage.scores.get(COSINE, 0.0),
            sum(question.weights[stem] for stem in shared) / total,
            sum(question.weights[s] * counts[s] / (counts[s] + fullness) for s in shared) / total,
            min(1.0, log1p(reading.length) / _LONG),
            _share_of_actions(question, reading),
            _share_of_head(question, reading),
            form_share(kind, passage.text),
            _holds_demand(kind, query, passage),
            1.0 - stands_beside(passage, query),
            len(names_in(names, [passage])) / len(names) if names else 1.0,
        )
    return rows


def similarity(evidence: Mapping[str, float]) -> float:
    """How similar a passage is to the question, by meaning and by words; of use only to compare passages."""
    return sum(share * evidence.get(name, 0.0) for name, share in _SIMILAR.items())


def titles(passage: Passage) -> str:
    """The title and headings of a passage; a file name or an id is no title."""
    title = "" if _FILE_NAME.fullmatch(passage.title) else passage.title
    return "\n".join(part for part in (title, passage.heading) if part)


def _holds_demand(kind: QuestionKind, query: Query, passage: Passage) -> float:
    if is_looked_up(passage):
        return 1.0
    if not shares_language(query, passage):
        return _KIND_UNKNOWN
    return float(answers_kind(kind, query.search, passage.text, titles(passage), query.weights))


def _share_of_actions(question: _Question, reading: _Reading) -> float:
    if not question.actions or not reading.head:
        return _NO_ACTION
    named = sum(stem in reading.head or bool(relatives(stem, reading.head_families)) for stem in question.actions)
    return named / len(question.actions)


def _share_of_head(question: _Question, reading: _Reading) -> float:
    if not reading.head:
        return _NO_HEAD
    credit = sum(
        1.0 if stem in question.weights else _DERIVED_CREDIT if relatives(stem, question.families) else 0.0
        for stem in reading.head
    )
    return credit / len(reading.head)


def _read_question(query: Query, function_words: Mapping[str, float]) -> _Question:
    weights: dict[str, float] = {}
    actions = []
    content = with_raised_codes(query)
    # In a small knowledge base every content word is frequent, and function words must not outweigh it.
    scale = min(1.0, max(content.values(), default=0.0) / _RARE)
    for word in all_words(query.search):
        stem, stop = analyse(word)
        if len(word) > 1:
            weights[stem] = scale * function_words.get(stem, 0.0) if stop else content.get(stem, 1.0)
        if not stop and _INFINITIVE.fullmatch(word.lower()):
            actions.append(stem)
    words_weight = sum(weights.values())
    for code in map(str.lower, query.codes):
        # However it is typed, an identifier weighs more than the words around it.
        weights.setdefault(code, words_weight * _CODES_TO_WORDS / len(query.codes))
    if not actions:
        matches = (analyse(match) for match in _ENGLISH_ACTION.findall(query.search.lower()))
        actions = [stem for stem, stop in matches if not stop]
    return _Question(weights, families(weights), tuple(dict.fromkeys(actions)))


@lru_cache(maxsize=2_000)
def _read(above: str, text: str) -> _Reading:
    counts = Counter(analyse(word)[0] for word in all_words(f"{above}\n{text}") if len(word) > 1)
    analysed = (analyse(word) for word in all_words(above))
    head = frozenset(stem for stem, stop in analysed if not stop)
    return _Reading(counts, counts.total(), head, families(head))
