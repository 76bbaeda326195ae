"""Makes follow-up questions ("а если E10?", "how long does it take?") stand alone.

No model: a question is a follow-up when it opens like a continuation, points back with a pronoun, or hardly names
anything. It is completed with the content words of the previous question, which weigh less (`Turn.history_stems`).
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
from components.understand.intent import repair_layout

_OPENING = re.compile(
    r"\W*(?:а|и|но|или|тогда|ну а|and|but|or|then|so|what about|how about|what if)(?![\w-])", re.IGNORECASE
)
_REFERRING = frozenset(
    """
    он она оно они его ее их ему ей им него нее них ним ней нем это этот эта эти этого этой этому этим этом этих туда
    там тут оттуда тогда теперь потом дальше тоже также еще такой такая такое такие такого такую
    it its they them their that this those these there then now too also one ones instead
    """.split()
)
# Words that ask without naming a topic.
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
"""Outcomes of questions that had a topic; small talk and blocked messages have none to return to."""

_MAX_INFORMATIVE_ALONE = 1
_MAX_INFORMATIVE_AFTER_OPENING = 3
_MAX_INFORMATIVE_WITH_PRONOUN = 4


@dataclass(frozen=True, slots=True)
class Standalone:
    """`text` is the completed question, `history_stems` the stems taken from the conversation."""

    text: str
    history_stems: frozenset[str]


@component
class FollowUpResolver:
    """Completes follow-up questions; passes any other question on unchanged.

    A reply to offered choices (a number, an ordinal, words of one option) becomes that option.

    :param turns: how many earlier questions to search for one with a topic, newest first.
    :param max_history_words: words taken from the earlier question at most.
    """

    def __init__(self, turns: int = 4, max_history_words: int = 6) -> None:
        self.turns = turns
        self.max_history_words = max_history_words

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with `standalone_question` and `history_stems` when the question does not stand alone."""
        standalone = self.standalone(turn.question, turn.history)
        if standalone is None:
            return {"turn": turn}
        return {"turn": replace(turn, standalone_question=standalone.text, history_stems=standalone.history_stems)}

    def standalone(self, question: str, history: Sequence[Exchange]) -> Standalone | None:
        """The question completed from its history; None when it stands alone already."""
        previous = next(
            (exchange for exchange in reversed(history[-self.turns :]) if exchange.outcome in _TOPICAL), None
        )
        if previous is None or not (typed := repair_layout(clean(question).strip())):
            return None
        if (option := chosen_option(typed, previous.options)) is not None:
            return _joined(option, [word.text for word in words(previous.question) if not word.stop], question=option)
        if not needs_history(typed):
            return None
        topic = list(dict.fromkeys([*self._topic(typed, previous.question), *self._topic(typed, previous.reply)]))
        return _joined(typed, topic, question=typed) if topic else None

    def _topic(self, question: str, previous: str) -> list[str]:
        """The content words of the previous question that this one omits; its codes are replaced by this one's."""
        question_stems = set(stems(question))
        replaced = {fold(code) for code in codes(previous)} if codes(question) else set()
        # A question that only names another thing ("а геля?") asks the same about it.
        is_elliptic = answer_type(question) == "other" and not codes(question)
        topic = [
            word.text
            for word in words(previous)
            if not word.stop
            and word.stem not in question_stems
            and word.stem not in replaced
            and (is_elliptic or word.stem not in _GENERIC)
        ]
        return list(dict.fromkeys(topic))[: self.max_history_words]


def needs_history(question: str) -> bool:
    """Whether the question needs the conversation to be understood."""
    question_words = words(question)
    informative = sum(map(_is_informative, question_words))
    if any(fold(word.text) in _REFERRING for word in question_words):
        return informative <= _MAX_INFORMATIVE_WITH_PRONOUN
    if _OPENING.match(question):
        return informative <= _MAX_INFORMATIVE_AFTER_OPENING
    return informative <= _MAX_INFORMATIVE_ALONE and not codes(question)


def _is_informative(word: Word) -> bool:
    return not word.stop and word.stem not in _GENERIC and fold(word.text) not in _REFERRING


def chosen_option(reply: str, options: Sequence[str]) -> str | None:
    """The option that a reply picks: by number, by ordinal, or by words that only one option has."""
    if not options:
        return None
    if number := _NUMBER.match(reply):
        place = int(number[1])
        return options[place - 1] if 1 <= place <= len(options) else None
    reply_stems = set(stems(reply))
    if (ordinal := _ordinal(reply_stems)) is not None:
        return options[ordinal] if ordinal < len(options) else None
    fitting = [option for option in options if reply_stems and reply_stems <= set(stems(option))]
    return fitting[0] if len(fitting) == 1 else None


def _ordinal(reply_stems: Set[str]) -> int | None:
    return next((place for place, forms in enumerate(_ORDINALS) if reply_stems and forms.issuperset(reply_stems)), None)


def _joined(text: str, history_words: Sequence[str], *, question: str) -> Standalone:
    question_stems = set(stems(question))
    added = [word for word in history_words if not question_stems.issuperset(stems(word))]
    full_question = f"{text} ({' '.join(added)})" if added else text
    return Standalone(full_question, frozenset(stems(" ".join(added))) - question_stems)
