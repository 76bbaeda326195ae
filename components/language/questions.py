"""What kind of answer a question asks for, by its words. Russian and English."""

import re
from functools import lru_cache
from typing import Literal

from components.language.identifiers import codes
from components.language.normalise import fold
from components.language.sentences import sentence_spans

AnswerType = Literal["date", "number", "name", "steps", "other"]
OPEN: frozenset[AnswerType] = frozenset({"steps", "other"})
"""Kinds whose answers have no recognisable form."""

_KINDS: tuple[tuple[AnswerType, re.Pattern[str]], ...] = (
    (
        "date",
        re.compile(
            r"\b(?:когда|в каком году|в каких годах|какого числа|в каком веке|в какой день|дата|"
            r"(?:what|which) (?:year|date|day|century))\b|^\W*(?:\w+ )?when\b"
        ),
    ),
    (
        "number",
        re.compile(
            r"\b(?:сколько|скольк\w+|какое количество|какой процент|как(?:ов|ова|ая|ой) "
            r"(?:цена|стоимость|размер|длина|высота|ширина|вес|площадь|срок|доля|численность|сумма)|"
            r"how (?:many|much|long|far|old|often)|what (?:percent\w*|number|price|size))\b"
        ),
    ),
    ("name", re.compile(r"\b(?:кто|кого|кому|кем|чей|чья|чье|чьи|где|куда|откуда|who|whom|whose|where)\b")),
    (
        "steps",
        re.compile(
            r"\b(?:как|каким образом|что (?:мне )?(?:делать|сделать|нужно|предпринять)|инструкци\w+|порядок|"
            r"how (?:to|do|can|should)|what (?:should|do|can) i do|steps?|instructions?|fix|исправить|устранить)\b"
        ),
    ),
)
_HOLDS: dict[AnswerType, re.Pattern[str]] = {
    "date": re.compile(
        r"\b(?:1\d{3}|20\d\d)\b|\d{1,2}[:.]\d\d|\b(?:век|столети|год|январ|феврал|март|апрел|ма[йя]|июн|июл|август|"
        r"сентябр|октябр|ноябр|декабр|centur|january|february|march|april|may|june|july|august|september|october|"
        r"november|december|дн(?:я|ей)|день|час|недел|месяц|day|hour|week|month|year)",
    ),
    "number": re.compile(
        r"\d|\b(?:один|одна|одно|два|две|дв(?:ух|ум)|три|трех|четыр|пят|шест|сем[ьи]|восем|восьм|девят|десят|"
        r"двенадцат|двадцат|тридцат|сорок|сто|тысяч|миллион|миллиард|полов|трет|one|two|three|four|five|six|seven|"
        r"eight|nine|ten|twelve|twenty|hundred|thousand|million|billion|half|dozen)"
    ),
}
_NAME = re.compile(r"(?<!^)\b[A-ZА-ЯЁ][\w-]+")


_STORY = 2
_ASKS = re.compile(
    r"(?:и |а |но |and |but |so )?(?:как|что|где|куда|откуда|когда|почему|зачем|сколько|кто|можно|нужно|нельзя ли|"
    r"есть ли|\w+ ли|как(?:ой|ая|ое|ие|им)|чем|how|what|why|who|which|can|could|is|are|does|do|did|should|"
    r"will|would|may|must|has|have|(?:when|where) (?:do|does|did|is|are|was|can|will|should))\b"
)


@lru_cache(maxsize=1_000)
def asked(question: str) -> str:
    """The sentence of a long question that asks; all of it where none does or there is only one.

    What stands around it tells the story, in which "when" and "where" ask for nothing.
    """
    sentences = [question[start:end] for start, end in sentence_spans(question)]
    if len(sentences) < _STORY:
        return question
    marked = (one for one in sentences if one.endswith("?"))
    return next(marked, None) or next((one for one in sentences if _ASKS.match(fold(one))), question)


def answer_type(question: str) -> AnswerType:
    """The kind of answer that `question` asks for; the most specific kind wins."""
    folded = fold(asked(question))
    found: AnswerType = next((kind for kind, pattern in _KINDS if pattern.search(folded)), "other")
    # A bare error code asks for its remedy.
    return "steps" if found == "other" and codes(question) else found


def holds(kind: AnswerType, text: str) -> bool:
    """Whether `text` holds something of that kind; always true of `OPEN` kinds."""
    if kind in OPEN:
        return True
    return bool(_NAME.search(text)) if kind == "name" else bool(_HOLDS[kind].search(fold(text)))
