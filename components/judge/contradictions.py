"""Do two sentences of two documents contradict each other? Precise before complete.

They do when they are about the same by nearly all of their words and differ in one thing that they state: an amount of
the same unit, a date, a time, a telephone number, a code, or that one of them is negated. Anything that only one of
them has may be what makes both right ("free plan", "paid plan"), so where each has something of its own they do not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from components.judge.analysis import Sentence, analyse
from components.judge.claims import NEGATIONS
from components.language.amounts import Figures, Span, figures
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
class Said:
    """A sentence that answers a question.

    `asked` are the question's stems in it or in its heading, `itself` the weight share of those in the sentence alone,
    `CARRIERS` left out of both.
    """

    passage: Passage
    sentence: Sentence
    asked: frozenset[str]
    itself: float

    @property
    def text(self) -> str:
        """The sentence as written."""
        return self.passage.text[self.sentence.start : self.sentence.end]


@dataclass(frozen=True, slots=True)
class _Read:
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


def same_subject(one: Passage, two: Passage) -> bool:
    """Whether the titles and headings of two passages allow them to speak of the same thing.

    Two subjects are two when each names something that the other never mentions, or when one names a name.
    """
    ones, twos = _subject(one.title, one.heading), _subject(two.title, two.heading)
    ours = ones.topic - analyse(two).stems
    theirs = twos.topic - analyse(one).stems
    return not (ours and theirs) and not (ours & ones.names or theirs & twos.names)


def contradiction(one: Said, two: Said, *, asks_for_code: bool) -> ConflictKind | None:
    """How two sentences contradict each other; None when they do not, or may be about two things."""
    left, right = _read(one.text), _read(two.text)
    if one.asked != two.asked or left.conditional != right.conditional:
        return None
    ours, theirs = _extra(left.topic, right.topic), _extra(right.topic, left.topic)
    if (ours and theirs) or ours & left.names or theirs & right.names:
        return None
    everything = len(left.topic | right.topic)
    common = everything - len(ours) - len(theirs)
    alike = common / everything if everything else 0.0
    if alike < _ALIKE or (common < _COMMON and min(one.itself, two.itself) < _ITSELF):
        return None
    if left.negations != right.negations:
        turned = len(left.negations ^ right.negations) == 1
        plain = not (left.conditional or _differing(left.figures, right.figures))
        return "negation" if turned and plain and alike >= _ALIKE_NEGATED else None
    if one.sentence.codes != two.sentence.codes:
        other = one.sentence.codes and two.sentence.codes and not one.sentence.codes & two.sentence.codes
        return "code" if other and asks_for_code else None
    differing = _differing(left.figures, right.figures)
    return differing[0] if len(differing) == 1 else None


@lru_cache(maxsize=4_000)
def _read(text: str) -> _Read:
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
    return _Read(frozenset(topic), _names(text) & topic, frozenset(negations), conditional, stated)


def _names(text: str) -> frozenset[str]:
    """The stems of capitalised words that do not begin the text, and of Latin words in a Russian one."""
    found = [word for word in words(text) if not word.stop]
    russian = any(not word.text.isascii() for word in found)
    capitals = [word for word in found if word.start > 0 and word.text[0].isupper()]
    if not russian and 2 * len(capitals) > len(found):
        capitals = []  # an English title: every word of it has a capital
    latin = [word for word in found if russian and word.text.isascii() and word.text.isalpha()]
    return frozenset(word.stem for word in (*capitals, *latin))


@lru_cache(maxsize=4_000)
def _subject(title: str, heading: str) -> _Subject:
    topic, names = set[str](), set[str]()
    for part in (title, *heading.split(" › ")):
        topic.update(word.stem for word in words(part) if not word.stop and fold(word.text) not in _GENRES)
        names.update(_names(part), codes(part))
        names.update(word.stem for word in words(part) if any(map(str.isdigit, word.text)))
    return _Subject(frozenset(topic), frozenset(names))


def _extra(ours: frozenset[str], theirs: frozenset[str]) -> frozenset[str]:
    """Stems that only we have, those aside that are derived from one of theirs."""
    extra = ours - theirs
    if not extra:
        return extra
    kin = families(theirs)
    return frozenset(stem for stem in extra if not relatives(stem, kin))


def _differing(one: Figures, two: Figures) -> list[ConflictKind]:
    """What both state and state differently. More than one difference says that they speak of two things."""
    differing: list[ConflictKind] = [
        "number" for unit in one.amounts.keys() & two.amounts.keys() if _disagree(one.amounts[unit], two.amounts[unit])
    ]
    if one.days and two.days and not any(_same_day(day, other) for day in one.days for other in two.days):
        differing.append("date")
    if one.moments and two.moments and not one.moments & two.moments:
        differing.append("date")
    if one.telephones and two.telephones and not one.telephones & two.telephones:
        differing.append("code")
    return differing


def _disagree(ours: Sequence[Span], theirs: Sequence[Span]) -> bool:
    """Whether amounts of one unit differ: one of equally many in its place, or else all of them."""
    if len(ours) == len(theirs) > 1:
        return sum(not _overlap(one, two) for one, two in zip(ours, theirs, strict=True)) == 1
    return not any(_overlap(one, two) for one, two in product(ours, theirs))


def _overlap(one: Span, two: Span) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


def _same_day(one: tuple[int, int, int], two: tuple[int, int, int]) -> bool:
    return one[:2] == two[:2] and (one[2] == two[2] or not (one[2] and two[2]))
