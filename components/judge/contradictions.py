"""Sentences of two documents that contradict each other: the same words, and one stated fact that differs.

Precision goes before recall. Two sentences contradict each other if their content words agree and they state the same
kinds of facts, of which exactly one differs: an amount of the same unit, a date or time written in the same form, a
telephone number, or a code at the end of the sentence; or if one of them is negated and no fact differs. A word that
only one of them has may make both right ("free plan", "paid plan"), and so may a title about something else. On the
1,183 documents of a Russian help centre this finds 6 pairs, 3 of them of two editions of one document, and none on the
1,124 of two English ones.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from components.judge.approaches import NEGATIONS, negated
from components.judge.terms import analyse
from components.language.captions import HEADING_SEPARATOR
from components.language.identifiers import codes, numbers
from components.language.marks import ITEM, ORDINAL
from components.language.normalise import fold
from components.language.words import families, relatives, words
from components.turn import ConflictKind, Passage

Span: TypeAlias = tuple[int, int]
Pair: TypeAlias = tuple[ConflictKind, Span, Span]
"""Kind of difference, and the spans of the two sentences in their passages."""

_LEAST_WORDS = 2
"""Content words that two sentences must have in common; `_LEAST_NEGATED` if only a negation differs."""
_LEAST_NEGATED = 3
_PROSE = re.compile(rf"\s*(?:{ITEM}\s+)?[^\W_].*[.!]\s*\Z", re.DOTALL)
_ORDINAL = re.compile(rf"(?<!\S){ORDINAL}\s")
_MONTH = (
    r"(?:январ|феврал|март|апрел|ма[яй]|июн|июл|август|сентябр|октябр|ноябр|декабр|"
    r"january|february|march|april|may|june|july|august|september|october|november|december)[а-я]*"
)
_FACTS = re.compile(
    r"(?P<telephone>(?<![\w-])\+?\d(?:[\s()-]{0,2}\d){9,12}(?!\d))"
    rf"|(?P<day>\b\d{{1,2}} {_MONTH}(?:,? \d{{4}})?|\b{_MONTH} \d{{1,2}}\b(?:,? \d{{4}})?)"
    r"|(?P<date>\b\d{1,2}\.\d{2}\.\d{4}\b|\b\d{4}-\d{2}-\d{2}\b)"
    r"|(?P<time>\b\d{1,2}:\d{2}\b)"
    r"|(?P<currency>[$€₽])?(?<![\w.,-])(?P<low>\d{1,3}(?:[\u00a0\u202f ]\d{3})+(?!\d)|\d+(?:[.,]\d+)?)(?![\w.])"
    r"(?:\s*[-–—]\s*(?P<high>\d+(?:[.,]\d+)?))?(?:\s*\([^()]{1,40}\))?"
    r"(?:\s+(?:рабоч|календарн|working|business|calendar)[а-я]*)?(?:[\s-]*(?P<unit>[$€₽%]|[^\W\d_]+))?"
)
_KINDS: Mapping[str, ConflictKind] = {
    "telephone": "code",
    "code": "code",
    "day": "date",
    "date": "date",
    "time": "date",
}
_UNITS = {"дня": "ден", "дне": "ден", "дни": "ден", "лет": "год"}
"""Units whose forms begin differently, by their first three letters."""
# Words that only carry a figure, and words of a title that say what kind of text it is.
_CARRIERS = frozenset(
    """
    стоит стоят стоимость цена составляет составлял равен равна равно занимает занимают длится срок действует примерно
    около всего ровно разрешено можно возможно нельзя запрещено невозможно число дата cost costs price take takes last
    equal amount allowed possible about exactly
    """.split()
)
_GENRES = frozenset(
    """
    частые вопросы вопрос ответы ответ справка инструкция правила условия памятка информация руководство статья общие
    описание обзор раздел документ новый старый faq help guide rules terms article overview general frequently asked
    questions question answers new old version
    """.split()
)
_CONDITIONAL = frozenset("если когда кроме иначе if when unless except otherwise".split())


@dataclass(frozen=True, slots=True)
class _Statement:
    """A parsed sentence: `topic` are its content stems without figures, `facts` its values by kind and unit."""

    topic: frozenset[str]
    facts: Mapping[tuple[str, str], tuple[str, ...]]
    negated: bool
    conditional: bool


def contradictions(passage: Passage, other: Passage) -> Iterator[Pair]:
    """Yield the pairs of sentences that contradict each other, each sentence of `passage` at most once."""
    if passage.lang != other.lang or not _same_subject(passage, other):
        return
    read = [(span, _read(other.text[slice(*span)])) for span in other.sentences]
    for span in passage.sentences:
        statement = _read(passage.text[slice(*span)])
        if statement is not None:
            kinds = ((_kind(statement, one), place) for place, one in read if one is not None)
            yield from next(([(kind, span, place)] for kind, place in kinds if kind is not None), [])


def _kind(one: _Statement, other: _Statement) -> ConflictKind | None:
    common = len(one.topic & other.topic)
    if one.conditional != other.conditional or common < _LEAST_WORDS or not _agree(one.topic, other.topic):
        return None
    if one.facts.keys() != other.facts.keys():
        return None
    differing = [slot for slot, values in one.facts.items() if _differ(values, other.facts[slot])]
    if one.negated != other.negated:
        return "negation" if common >= _LEAST_NEGATED and not differing and not one.conditional else None
    return _KINDS.get(differing[0][0], "number") if len(differing) == 1 else None


def _agree(topic: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether each stem is among the others, itself or as a related word."""
    kin, other_kin = families(topic), families(other)
    return all(relatives(stem, other_kin) for stem in topic - other) and all(
        relatives(stem, kin) for stem in other - topic
    )


def _differ(values: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether one of equally many values differs in its place."""
    return len(values) == len(others) and sum(one != other for one, other in zip(values, others, strict=True)) == 1


def _same_subject(passage: Passage, other: Passage) -> bool:
    """Return whether titles and headings allow that both passages speak of the same thing.

    They do not if each names something that the other passage never mentions, or if one names a name so.
    """
    left, other_left = _unmentioned(passage, other), _unmentioned(other, passage)
    return not (left and other_left) and not any((left | other_left).values())


def _unmentioned(passage: Passage, other: Passage) -> dict[str, bool]:
    """Return the stems of title and headings that the other passage lacks, and whether each belongs to a name."""
    return {
        word.stem: (word.start > 0 and word.text[0].isupper()) or any(map(str.isdigit, word.text))
        for part in (passage.title, *passage.heading.split(HEADING_SEPARATOR))
        for word in words(part)
        if not (word.stop or fold(word.text) in _GENRES or word.stem in analyse(other).stems)
    }


@lru_cache(maxsize=4_000)
def _read(text: str) -> _Statement | None:
    """Parse a sentence; return None for anything but a full sentence, such as a heading, table or question."""
    if not _PROSE.match(text):
        return None
    text = _ORDINAL.sub(" ", text).strip()
    folded = fold(text)
    facts: dict[tuple[str, str], tuple[str, ...]] = {}
    for match in _FACTS.finditer(folded):
        slot, value = _fact(match, text)
        facts[slot] = (*facts.get(slot, ()), value)
    named = set(codes(text))
    stated = {code for code in named if folded.rstrip(".! »\"'").endswith(code.lower())}
    if stated:
        facts["code", ""] = tuple(stated)
    topic = {
        word.stem
        for word in words(_FACTS.sub(" ", folded))
        if not (word.stop or word.text in _CARRIERS | NEGATIONS or any(map(str.isdigit, word.text)))
    }
    conditional = not _CONDITIONAL.isdisjoint(folded.split())
    return _Statement(frozenset(topic | named - stated), facts, negated(text), conditional)


def _fact(match: re.Match[str], text: str) -> tuple[tuple[str, str], str]:
    """Return the kind and unit of a figure, and its value."""
    for kind in ("telephone", "day", "date", "time"):
        if match[kind]:
            value = re.sub(r"\D", "", match[kind])[-10:] if kind == "telephone" else " ".join(match[kind].split())
            form = re.sub(r"\w+", "", match[kind]) if kind == "date" else str(value.count(" "))
            return (kind, "" if kind in ("telephone", "time") else form), value
    unit = match["currency"] or (match["unit"] or "")[:3]
    values = numbers(f"{match['low']} – {match['high']}" if match["high"] else match["low"], text)
    return ("amount", _UNITS.get(unit, unit)), "–".join(values)
