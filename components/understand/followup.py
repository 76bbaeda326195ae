"""Questions that lean on the conversation ("а если E10?", "how long does it take?"), said so that they stand alone.

No model: a question leans when it opens like a continuation, points back with a pronoun, or hardly names anything. It
is then completed with the telling words of the question before, which count less than its own (`Turn.carried`).
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from haystack import component

from components.language.identifiers import codes
from components.language.normalise import clean, fold
from components.language.questions import answer_type
from components.language.words import Word, stems, words
from components.turn import Exchange, Turn
from components.understand.intent import meant as read

_OPENING = re.compile(
    r"\W*(?:а|и|но|или|тогда|ну а|and|but|or|then|so|what about|how about|what if)(?![\w-])", re.IGNORECASE
)
_POINTING = frozenset(
    """
    он она оно они его ее их ему ей им него нее них ним ней нем это этот эта эти этого этой этому этим этом этих туда
    там тут оттуда тогда теперь потом дальше тоже также еще такой такая такое такие такого такую
    it its they them their that this those these there then now too also one ones instead
    """.split()
)
# Words that ask without naming what about.
_GENERIC = frozenset(
    stems(
        """
        делать сделать стоить стоит ждать длиться длится занимать занимает работать работает получить взять узнать найти
        находиться находится значит означает нужно придётся часто долго быстро много дорого подробнее примерно именно
        цена стоимость срок время день дней месяц месяцев год лет час часов минута раз прошло уже хочу могу может
        go get take takes took cost costs last lasts long much many often soon back come comes work works need want know
        find time day days month months year years hour hours mean means tell more next again happen happens make
        """
    )
)
_NUMBER = re.compile(r"\W*(?:№\s*)?(\d{1,2})\W*\Z")
_ORDINALS: tuple[frozenset[str], ...] = tuple(
    frozenset(stems(forms))
    for forms in (
        "первый первая первое первую one first",
        "второй вторая второе вторую two second",
        "третий третья третье третью three third",
    )
)
_TOPICAL: frozenset[str] = frozenset(
    {"answered", "partially_answered", "low_confidence", "clarify", "refused", "cannot_answer", "human_followup"}
)
"""Outcomes of questions that were about something. Small talk and blocked messages are no topic to return to."""

_THIN = 1
_OPENED = 3
_POINTED = 4


@dataclass(frozen=True, slots=True)
class Standalone:
    """`text` is the question said in full, `carried` the stems that came from the conversation."""

    text: str
    carried: frozenset[str]


@component
class FollowUpResolver:
    """Completes a question that leans on the conversation; any other one passes as it is.

    The answer to an offered choice (a number, an ordinal, words of one option) becomes that option.

    :param turns: questions looked back at, newest first, until one is about something.
    :param carried: most words taken over.
    """

    def __init__(self, turns: int = 4, carried: int = 6) -> None:
        self.turns = turns
        self.carried = carried

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with `meant` and `carried` when the question does not stand alone."""
        found = self.standalone(turn.question, turn.history)
        return {"turn": replace(turn, meant=found.text, carried=found.carried) if found else turn}

    def standalone(self, question: str, history: Sequence[Exchange]) -> Standalone | None:
        """The question as it would be asked without its history; None when it is asked that way already."""
        before = next((one for one in reversed(history[-self.turns :]) if one.outcome in _TOPICAL), None)
        if before is None or not (typed := read(clean(question).strip())):
            return None
        if (option := chosen(typed, before.options)) is not None:
            return _joined(option, [word.text for word in words(before.question) if not word.stop], question=option)
        if not leans(typed):
            return None
        kept = list(dict.fromkeys([*self._topic(typed, before.question), *self._topic(typed, before.reply)]))
        return _joined(typed, kept, question=typed) if kept else None

    def _topic(self, question: str, before: str) -> list[str]:
        """The words of the question before that this one leaves out, codes replaced by its own."""
        own = set(stems(question))
        replaced = {fold(code) for code in codes(before)} if codes(question) else set()
        # A question that only names something else ("а геля?") asks what the last one asked.
        whole = answer_type(question) == "other" and not codes(question)
        kept = [
            word.text
            for word in words(before)
            if not word.stop
            and word.stem not in own
            and word.stem not in replaced
            and (whole or word.stem not in _GENERIC)
        ]
        return list(dict.fromkeys(kept))[: self.carried]


def leans(question: str) -> bool:
    """Whether the question needs the conversation to be understood."""
    found = words(question)
    telling = sum(map(_tells, found))
    if any(fold(word.text) in _POINTING for word in found):
        return telling <= _POINTED
    if _OPENING.match(question):
        return telling <= _OPENED
    return telling <= _THIN and not codes(question)


def _tells(word: Word) -> bool:
    return not word.stop and word.stem not in _GENERIC and fold(word.text) not in _POINTING


def chosen(reply: str, options: Sequence[str]) -> str | None:
    """The option that a reply picks: by number, by ordinal, or by words that only one option has."""
    if not options:
        return None
    if number := _NUMBER.match(reply):
        place = int(number[1])
        return options[place - 1] if 1 <= place <= len(options) else None
    said = set(stems(reply))
    if (ordinal := _ordinal(said)) is not None:
        return options[ordinal] if ordinal < len(options) else None
    fitting = [option for option in options if said and said <= set(stems(option))]
    return fitting[0] if len(fitting) == 1 else None


def _ordinal(said: Set[str]) -> int | None:
    return next((place for place, forms in enumerate(_ORDINALS) if said and forms.issuperset(said)), None)


def _joined(text: str, carried: Sequence[str], *, question: str) -> Standalone:
    own = set(stems(question))
    added = [word for word in carried if not own.issuperset(stems(word))]
    whole = f"{text} ({' '.join(added)})" if added else text
    return Standalone(whole, frozenset(stems(" ".join(added))) - own)
