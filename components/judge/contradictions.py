"""Do two sentences of two documents contradict each other? Prefers precision over recall.

They do when nearly all of their words agree and they differ in one stated fact: an amount of the same unit, a date, a
time, a telephone number, a code, or that one of them is negated. A word that only one of them has may make both right
("free plan", "paid plan"), so sentences that each have words of their own do not contradict.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from components.judge.analysis import Sentence, analyse
from components.judge.claims import NEGATIONS
from components.language.amounts import Figures, Span, figures
from components.language.captions import HEADING_SEPARATOR
from components.language.identifiers import codes
from components.language.marks import ORDINAL
from components.language.normalise import fold
from components.language.relatives import families, relatives
from components.language.words import analyse as analyse_word
from components.language.words import words
from components.turn import ConflictKind, Passage

_ORDINALS = re.compile(rf"(?<!\S){ORDINAL}\s")
_ALIKE = 0.6
_ALIKE_NEGATED = 0.8
# Words in common without which the sentences must say by themselves what was asked.
_COMMON = 2
_ITSELF = 0.6
CARRIERS = frozenset(
    analyse_word(word)[0]
    for word in """
    стоит стоят стоимость цена составляет составлял равен равна равно равняется занимает занимают длится срок долго
    действует обходится примерно около всего ровно разрешено разрешается возможно запрещено число дата cost price take
    last equal amount allowed possible about exactly long date number
    """.split()
)
"""Stems of words that only carry a figure, ask for one, or only carry a negation."""
# Words of a title that say what kind of text it is, not what it is about.
_GENRES = frozenset(
    """
    частые вопросы вопрос ответы ответ справка инструкция правила условия памятка информация руководство статья общие
    описание обзор раздел база знаний документ новый старый редакция версия faq help guide rules terms article
    overview general frequently asked questions question answers new old version
    """.split()
)
_CONDITIONAL = frozenset("если когда кроме иначе if when unless except otherwise".split())


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence that answers a question.

    `question_stems` are those of the question in it or its heading, `itself` the weight share of those in the sentence
    alone; both without `CARRIERS`.
    """

    passage: Passage
    sentence: Sentence
    question_stems: frozenset[str]
    itself: float

    @property
    def text(self) -> str:
        """The sentence as written."""
        return self.passage.text[self.sentence.start : self.sentence.end]


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A sentence taken apart: what it is about, what it states.

    `topic` are its content stems without figures, units and negations; `names` those of names and of Latin words.
    """

    topic: frozenset[str]
    names: frozenset[str]
    negations: frozenset[str]
    conditional: bool
    figures: Figures


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a title and its headings are about: content stems, and those among them that name one thing of many."""

    topic: frozenset[str]
    names: frozenset[str]


def same_subject(passage: Passage, other: Passage) -> bool:
    """Whether the titles and headings of two passages allow them to speak of the same thing.

    Two subjects are two when each names something that the other never mentions, or when one names a name.
    """
    ones, twos = _subject(passage.title, passage.heading), _subject(other.title, other.heading)
    topic_left = ones.topic - analyse(other).stems
    other_topic_left = twos.topic - analyse(passage).stems
    return not (topic_left and other_topic_left) and not (topic_left & ones.names or other_topic_left & twos.names)


def contradiction(sentence: AnswerSentence, other: AnswerSentence, *, asks_for_code: bool) -> ConflictKind | None:
    """How two sentences contradict each other; None when they do not, or may be about different things."""
    reading, other_reading = _parsed(sentence.text), _parsed(other.text)
    if sentence.question_stems != other.question_stems or reading.conditional != other_reading.conditional:
        return None
    extra, other_extra = _extra(reading.topic, other_reading.topic), _extra(other_reading.topic, reading.topic)
    if (extra and other_extra) or extra & reading.names or other_extra & other_reading.names:
        return None
    everything = len(reading.topic | other_reading.topic)
    common = everything - len(extra) - len(other_extra)
    alike = common / everything if everything else 0.0
    if alike < _ALIKE or (common < _COMMON and min(sentence.itself, other.itself) < _ITSELF):
        return None
    if reading.negations != other_reading.negations:
        turned = len(reading.negations ^ other_reading.negations) == 1
        plain = not (reading.conditional or _differing(reading.figures, other_reading.figures))
        return "negation" if turned and plain and alike >= _ALIKE_NEGATED else None
    if sentence.sentence.codes != other.sentence.codes:
        both_coded = sentence.sentence.codes and other.sentence.codes
        disjoint = both_coded and not sentence.sentence.codes & other.sentence.codes
        return "code" if disjoint and asks_for_code else None
    differing = _differing(reading.figures, other_reading.figures)
    return differing[0] if len(differing) == 1 else None


@lru_cache(maxsize=4_000)
def _parsed(text: str) -> _Parsed:
    stated = figures(_ORDINALS.sub(" ", text))
    topic, negations = set[str](), set[str]()
    conditional = False
    for word in words(text):
        folded = fold(word.text)
        conditional |= folded in _CONDITIONAL
        if folded in NEGATIONS:
            negations.add(folded)
        elif not (word.stop or word.stem in CARRIERS or word.stem in stated.units or any(map(str.isdigit, folded))):
            topic.add(word.stem)
    return _Parsed(frozenset(topic), _names(text) & topic, frozenset(negations), conditional, stated)


def _names(text: str) -> frozenset[str]:
    """The stems of capitalised words that do not begin the text, and of Latin words in a Russian one."""
    content_words = [word for word in words(text) if not word.stop]
    russian = any(not word.text.isascii() for word in content_words)
    capitals = [word for word in content_words if word.start > 0 and word.text[0].isupper()]
    if not russian and 2 * len(capitals) > len(content_words):
        capitals = []  # an English title: every word of it has a capital
    latin = [word for word in content_words if russian and word.text.isascii() and word.text.isalpha()]
    return frozenset(word.stem for word in (*capitals, *latin))


@lru_cache(maxsize=4_000)
def _subject(title: str, heading: str) -> _Subject:
    topic, names = set[str](), set[str]()
    for part in (title, *heading.split(HEADING_SEPARATOR)):
        topic.update(word.stem for word in words(part) if not word.stop and fold(word.text) not in _GENRES)
        names.update(_names(part), codes(part))
        names.update(word.stem for word in words(part) if any(map(str.isdigit, word.text)))
    return _Subject(frozenset(topic), frozenset(names))


def _extra(topic: frozenset[str], other_topic: frozenset[str]) -> frozenset[str]:
    """Stems that only `topic` has, except those derived from a stem of the other."""
    extra = topic - other_topic
    if not extra:
        return extra
    kin = families(other_topic)
    return frozenset(stem for stem in extra if not relatives(stem, kin))


def _differing(stated: Figures, other: Figures) -> list[ConflictKind]:
    """What both state differently. More than one difference means that they are about different things."""
    differing: list[ConflictKind] = [
        "number"
        for unit in stated.amounts.keys() & other.amounts.keys()
        if _disagree(stated.amounts[unit], other.amounts[unit])
    ]
    if stated.days and other.days and not any(_same_day(*days) for days in product(stated.days, other.days)):
        differing.append("date")
    if stated.moments and other.moments and not stated.moments & other.moments:
        differing.append("date")
    if stated.telephones and other.telephones and not stated.telephones & other.telephones:
        differing.append("code")
    return differing


def _disagree(spans: Sequence[Span], other_spans: Sequence[Span]) -> bool:
    """Whether amounts of one unit differ: one of equally many in its place, or else all of them."""
    if len(spans) == len(other_spans) > 1:
        return sum(not _overlap(span, other) for span, other in zip(spans, other_spans, strict=True)) == 1
    return not any(_overlap(span, other) for span, other in product(spans, other_spans))


def _overlap(span: Span, other: Span) -> bool:
    return span[0] <= other[1] and other[0] <= span[1]


def _same_day(date: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return date[:2] == other[:2] and (date[2] == other[2] or not (date[2] and other[2]))
